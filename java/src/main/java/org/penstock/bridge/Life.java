package org.penstock.bridge;

/**
 * The life of a task's worker within one batch: which event leads from which state to which, and what is then to be done.
 *
 * <pre>
 *            NEEDED    UNNEEDED           INPUT_ENDED      ENDED             DIED
 * IDLE       START     RELEASE            FINISH: OVER     -                 -
 * RUNNING    -         SEND_LAST:         SEND_END:        FINISH: OVER      RESTART
 *                      RETIRING           ENDING
 * RETIRING   WAIT      -                  LEAVING          RELEASE: IDLE     RESTART_LAST
 * LEAVING    -         -                  -                FINISH: OVER      RESTART_LAST
 * ENDING     -         -                  -                FINISH: OVER      RESTART_END
 * OVER       -         RELEASE            -                -                 -
 * </pre>
 *
 * There is one rule for a worker that dies, whatever it was doing: its successor gets everything that was not acknowledged,
 * and then the end that was asked of it. RUNNING can end without being asked: a source that has run dry.
 */
public final class Life {
  public enum State { IDLE, RUNNING, RETIRING, LEAVING, ENDING, OVER }

  public enum Event { NEEDED, UNNEEDED, INPUT_ENDED, ENDED, DIED }

  /**
   * START: a worker. SEND_LAST, SEND_END: ask it to finish, for good or for this batch. RESTART: a successor with all that is
   * unacknowledged, and the same end asked of it. RELEASE: those who waited for its end go on. FINISH: the task has ended its
   * part of the batch. WAIT: not now.
   */
  public enum Action { NOTHING, WAIT, START, SEND_LAST, SEND_END, RESTART, RESTART_LAST, RESTART_END, RELEASE, FINISH }

  private volatile State state = State.IDLE; // changed by whoever has the lock of its task

  public State state() {
    return state;
  }

  /** Whether a worker is there. */
  boolean hasWorker() {
    return state != State.IDLE && state != State.OVER;
  }

  /** Takes the event in; what is to be done now. */
  public Action on(Event event) {
    return switch (state) {
      case IDLE -> switch (event) {
        case NEEDED -> to(State.RUNNING, Action.START);
        case UNNEEDED -> Action.RELEASE;
        case INPUT_ENDED -> to(State.OVER, Action.FINISH);
        case ENDED, DIED -> Action.NOTHING;
      };
      case RUNNING -> switch (event) {
        case NEEDED -> Action.NOTHING;
        case UNNEEDED -> to(State.RETIRING, Action.SEND_LAST);
        case INPUT_ENDED -> to(State.ENDING, Action.SEND_END);
        case ENDED -> to(State.OVER, Action.FINISH);
        case DIED -> Action.RESTART;
      };
      case RETIRING -> switch (event) {
        case NEEDED -> Action.WAIT;
        case UNNEEDED -> Action.NOTHING;
        case INPUT_ENDED -> to(State.LEAVING, Action.NOTHING);
        case ENDED -> to(State.IDLE, Action.RELEASE);
        case DIED -> Action.RESTART_LAST;
      };
      case LEAVING -> switch (event) {
        case NEEDED, UNNEEDED, INPUT_ENDED -> Action.NOTHING;
        case ENDED -> to(State.OVER, Action.FINISH);
        case DIED -> Action.RESTART_LAST;
      };
      case ENDING -> switch (event) {
        case NEEDED, UNNEEDED, INPUT_ENDED -> Action.NOTHING;
        case ENDED -> to(State.OVER, Action.FINISH);
        case DIED -> Action.RESTART_END;
      };
      case OVER -> event == Event.UNNEEDED ? Action.RELEASE : Action.NOTHING;
    };
  }

  private Action to(State next, Action action) {
    state = next;
    return action;
  }
}
