"""The rules of the protocol, each of which can be switched off to see what it is there for."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Rules:
    """docs/epochs.md says what each of them means."""

    upstream_aligns: bool = True
    whole_pool: bool = True
    align_before_ledger: bool = True
    reading_never_stops: bool = True
    full_is_invalid: bool = True
    moves_never_pass: bool = True
    moves_until_committed: bool = True
    order_names_moved: bool = True
    waiting_never_passes: bool = True
    mark_closes_smaller: bool = True
    idle_answers: bool = True
    dry_answers: bool = True
    one_frame: bool = True
    order_kept_until_answered: bool = True
    reports_are_cumulative: bool = True
    quiet_after_voids: bool = True
    attempt_in_reports: bool = True
    attempt_in_envelopes: bool = True
    exact_death_rolls_back: bool = True
    start_drops_memory: bool = True
    append_before_commit: bool = True
    alive_until_commit: bool = True
    handles_until_answered: bool = True
    retires_prepared: bool = True
    commit_again_at_start: bool = True
    abort_at_start: bool = True
    commit_is_idempotent: bool = True
    fence: bool = True
    rollback_is_in_the_log: bool = True
    one_log: bool = True
    table_in_mark: bool = True
    moved_are_held: bool = True
    next_mark_waits: bool = True
    log_before_hand_over: bool = True
    event_time_is_frozen: bool = True
    chain_takes_changed: bool = True
    head_waits_for_all: bool = True
    ids_know_no_replica: bool = True
    ids_count_puts: bool = True

    def without(self, rule: str) -> "Rules":
        """All but one."""
        return replace(self, **{rule: False})
