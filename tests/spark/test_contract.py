"""What Python and Java must agree on, and what both need of Spark: another version fails here, loudly."""

import functools
import os
import re
import shutil
import subprocess
from importlib.metadata import requires, version
from pathlib import Path

import pytest

from penstock.flow.spark_conf import EXTENSIONS, LINKS, PLUGIN, SEALED
from penstock.spark import bridge
from penstock.spark.build_bridge import SOURCES, pyspark_home
from penstock.spark.session_conf import SPARK_VERSION
from penstock.wire import envelope
from penstock.wire import frames as wire

PORT = (
    f"Penstock supports Spark {SPARK_VERSION}; port it to another version in"
    " org.apache.spark.penstock.SparkInternals (Java) and penstock/spark/bridge.py (Python)"
)
OPERATORS = "org.apache.spark.sql.catalyst.plans.logical"
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
READ = "org.apache.spark.sql.connector.read"
SHUFFLE = "org.apache.spark.shuffle"
FILES = "org.apache.spark.sql.execution.streaming.checkpointing"
NETWORK = "org.apache.spark.network"
SIGNATURES = {
    "org.apache.spark.TaskContext$": [
        "void setTaskContext(org.apache.spark.TaskContext)",
        "void unset()",
        "org.apache.spark.TaskContextImpl empty()",
    ],
    "org.apache.spark.TaskContext": [
        "org.apache.spark.TaskContext"
        " addTaskCompletionListener(org.apache.spark.util.TaskCompletionListener)",
        "boolean isCompleted()",
        "boolean isFailed()",
        "int partitionId()",
        "int stageId()",
        "long taskAttemptId()",
        "void killTaskIfInterrupted()",
    ],
    "org.apache.spark.SparkEnv": [
        "org.apache.spark.SecurityManager securityManager()",
        f"{SHUFFLE}.PipelinedShuffleManager pipelinedShuffleManager()",
        "org.apache.spark.storage.BlockManager blockManager()",
        "java.lang.String executorId()",
        "scala.Option<org.apache.spark.StreamingShuffleOutputTracker> streamingShuffleOutputTracker()",
    ],
    "org.apache.spark.SecurityManager": [
        "boolean isAuthenticationEnabled()",
        "org.apache.spark.SSLOptions getRpcSSLOptions()",
    ],
    "org.apache.spark.scheduler.MapStatus$": [
        "org.apache.spark.scheduler.MapStatus"
        " apply(org.apache.spark.storage.BlockManagerId, long[], long, long)",
    ],
    "org.apache.spark.storage.BlockManager": ["org.apache.spark.storage.BlockManagerId shuffleServerId()"],
    "org.apache.spark.ShuffleDependency": [
        "org.apache.spark.Partitioner partitioner()",
        "org.apache.spark.serializer.Serializer serializer()",
    ],
    f"{FILES}.FileContextBasedCheckpointFileManager": [
        "org.apache.hadoop.fs.FSDataOutputStream createTempFile(org.apache.hadoop.fs.Path)",
        "void renameTempFile(org.apache.hadoop.fs.Path, org.apache.hadoop.fs.Path, boolean)",
    ],
    f"{SHUFFLE}.streaming.StreamingShuffleManager": [
        f"<K, V> {SHUFFLE}.ShuffleWriter<K, V> getWriter({SHUFFLE}.ShuffleHandle, long,"
        f" org.apache.spark.TaskContext, {SHUFFLE}.ShuffleWriteMetricsReporter)",
        f"<K, C> {SHUFFLE}.ShuffleReader<K, C> getReader({SHUFFLE}.ShuffleHandle, int, int, int, int,"
        f" org.apache.spark.TaskContext, {SHUFFLE}.ShuffleReadMetricsReporter)",
        "boolean unregisterShuffle(int)",
    ],
    "org.apache.spark.StreamingShuffleOutputTracker": [
        "scala.Option<org.apache.spark.ShuffleLocationResponse> getAvailableShuffleWriterTaskLocations(int)",
        "boolean registerShuffleWriterTask(int, long, org.apache.spark.StreamingShuffleTaskLocation)",
    ],
    "org.apache.spark.ShuffleLocationResponse": [
        "int numShuffleWriterTasks()",
        "scala.collection.immutable.Map<java.lang.Object, org.apache.spark.StreamingShuffleTaskLocation>"
        " shuffleTaskLocations()",
    ],
    "org.apache.spark.StreamingShuffleTaskLocation": [
        "org.apache.spark.StreamingShuffleTaskLocation(java.lang.String, java.lang.String, int)",
        "java.lang.String executorId()",
        "java.lang.String host()",
        "int port()",
    ],
    f"{SHUFFLE}.ShuffleWriter": [
        "void write(scala.collection.Iterator<scala.Product2<K, V>>)",
        "scala.Option<org.apache.spark.scheduler.MapStatus> stop(boolean)",
        "long[] getPartitionLengths()",
    ],
    f"{SHUFFLE}.ShuffleReader": ["scala.collection.Iterator<scala.Product2<K, C>> read()"],
    f"{SHUFFLE}.streaming.StreamingShuffleHandle": [
        f"{SHUFFLE}.streaming.StreamingShuffleHandle(int, org.apache.spark.ShuffleDependency<K, V, C>)",
    ],
    f"{NETWORK}.TransportContext": [
        f"{NETWORK}.TransportContext({NETWORK}.util.TransportConf, {NETWORK}.server.RpcHandler)",
        f"{NETWORK}.server.TransportServer createServer(java.lang.String, int,"
        f" java.util.List<{NETWORK}.server.TransportServerBootstrap>)",
    ],
    f"{NETWORK}.netty.SparkTransportConf": [
        f"{NETWORK}.util.TransportConf fromSparkConf(org.apache.spark.SparkConf, java.lang.String, int,"
        " scala.Option<java.lang.String>, scala.Option<org.apache.spark.SSLOptions>)",
    ],
    f"{NETWORK}.protocol.Message$Type": [
        f"final {NETWORK}.protocol.Message$Type OneWayMessage",
        "void encode(io.netty.buffer.ByteBuf)",
    ],
    f"{NETWORK}.util.TransportFrameDecoder": ["final java.lang.String HANDLER_NAME"],
    f"{NETWORK}.server.RpcHandler": [
        f"void receive({NETWORK}.client.TransportClient, java.nio.ByteBuffer,"
        f" {NETWORK}.client.RpcResponseCallback)",
        f"void receive({NETWORK}.client.TransportClient, java.nio.ByteBuffer)",
        f"{NETWORK}.client.StreamCallbackWithID receiveStream({NETWORK}.client.TransportClient,"
        f" java.nio.ByteBuffer, {NETWORK}.client.RpcResponseCallback)",
        f"{NETWORK}.server.RpcHandler$MergedBlockMetaReqHandler getMergedBlockMetaReqHandler()",
        f"{NETWORK}.server.StreamManager getStreamManager()",
        f"void channelActive({NETWORK}.client.TransportClient)",
        f"void channelInactive({NETWORK}.client.TransportClient)",
        f"void exceptionCaught(java.lang.Throwable, {NETWORK}.client.TransportClient)",
    ],
    f"{NETWORK}.server.StreamManager": [
        f"void checkAuthorization({NETWORK}.client.TransportClient, long)",
        f"void checkAuthorization({NETWORK}.client.TransportClient, java.lang.String)",
        f"{NETWORK}.buffer.ManagedBuffer getChunk(long, int)",
    ],
    f"{NETWORK}.client.TransportClient": [
        "io.netty.channel.Channel getChannel()",
        "java.nio.ByteBuffer sendRpcSync(java.nio.ByteBuffer, long)",
    ],
    f"{NETWORK}.client.TransportClientBootstrap": [
        f"void doBootstrap({NETWORK}.client.TransportClient, io.netty.channel.Channel)",
    ],
    f"{NETWORK}.server.TransportServerBootstrap": [
        f"{NETWORK}.server.RpcHandler doBootstrap(io.netty.channel.Channel, {NETWORK}.server.RpcHandler)",
    ],
    f"{NETWORK}.client.TransportClientFactory": [
        f"{NETWORK}.client.TransportClient createUnmanagedClient(java.lang.String, int)",
    ],
    f"{NETWORK}.crypto.AuthServerBootstrap": [
        f"{NETWORK}.crypto.AuthServerBootstrap({NETWORK}.util.TransportConf, {NETWORK}.sasl.SecretKeyHolder)",
    ],
    f"{NETWORK}.crypto.AuthClientBootstrap": [
        f"{NETWORK}.crypto.AuthClientBootstrap({NETWORK}.util.TransportConf, java.lang.String,"
        f" {NETWORK}.sasl.SecretKeyHolder)",
    ],
    f"{OPERATORS}.RepartitionByExpression": [
        f"{OPERATORS}.RepartitionByExpression(scala.collection.immutable.Seq<{EXPRESSIONS}.Expression>,"
        f" {OPERATORS}.LogicalPlan, scala.Option<java.lang.Object>, scala.Option<java.lang.Object>)",
        f"scala.collection.immutable.Seq<{EXPRESSIONS}.Expression> partitionExpressions()",
        "scala.Option<java.lang.Object> optAdvisoryPartitionSize()",
        "int numPartitions()",
    ],
    f"{EXPRESSIONS}.UnsafeRow": [
        f"{EXPRESSIONS}.UnsafeRow(int)",
        "int calculateBitSetWidthInBytes(int)",
        f"{EXPRESSIONS}.UnsafeRow copy()",
        "java.lang.Object getBaseObject()",
        "long getBaseOffset()",
        "int getSizeInBytes()",
        "int numFields()",
        "void pointTo(byte[], int)",
        "void pointTo(java.lang.Object, long, int)",
    ],
    f"{EXPRESSIONS}.DirectShufflePartitionID": [f"{EXPRESSIONS}.Expression child()"],
    f"{EXPRESSIONS}.AttributeReference": ["java.lang.String name()"],
    "org.apache.spark.sql.SparkSessionExtensions": [
        "void injectOptimizerRule(scala.Function1<org.apache.spark.sql.SparkSession,"
        f" org.apache.spark.sql.catalyst.rules.Rule<{OPERATORS}.LogicalPlan>>)",
    ],
    f"{READ}.streaming.SupportsRealTimeMode": [
        f"{READ}.InputPartition[] planInputPartitions({READ}.streaming.Offset)",
        f"{READ}.streaming.Offset mergeOffsets({READ}.streaming.PartitionOffset[])",
    ],
    f"{READ}.streaming.SupportsRealTimeRead": [
        f"{READ}.streaming.SupportsRealTimeRead$RecordStatus nextWithTimeout(java.lang.Long)",
    ],
    f"{READ}.streaming.SupportsRealTimeRead$RecordStatus": [
        f"{READ}.streaming.SupportsRealTimeRead$RecordStatus newStatusWithoutArrivalTime(boolean)",
    ],
    f"{READ}.streaming.MicroBatchStream": [
        f"{READ}.InputPartition[] planInputPartitions({READ}.streaming.Offset, {READ}.streaming.Offset)",
    ],
    "org.apache.spark.api.java.function.MapPartitionsFunction": [
        "java.util.Iterator<U> call(java.util.Iterator<T>)"
    ],
    "org.apache.spark.api.plugin.PluginContext": [
        "java.lang.Object ask(java.lang.Object)",
        "java.lang.String executorID()",
    ],
    "org.apache.spark.api.plugin.DriverPlugin": ["java.lang.Object receive(java.lang.Object)"],
    "org.apache.spark.sql.classic.Dataset": [
        "org.apache.spark.sql.classic.Dataset<T> repartitionById(int, org.apache.spark.sql.Column)",
        "org.apache.spark.sql.classic.DataStreamWriter<T> writeStream()",
    ],
    "org.apache.spark.sql.streaming.Trigger": [
        "org.apache.spark.sql.streaming.Trigger RealTime(java.lang.String)"
    ],
}


def java(name: str) -> str:
    """A Java source of the bridge."""
    return (SOURCES / "org" / "penstock" / "bridge" / f"{name}.java").read_text()


def constants(text: str, kind: str) -> dict[str, int]:
    found = re.findall(rf"static final {kind} ([A-Z]+) = (?:\(byte\) )?(0x[0-9A-F]+|\d+);", text)
    return {name: int(value, 0) for name, value in found}


def test_frame_kinds_are_the_same_on_both_sides() -> None:
    theirs = constants(java("Wire"), "byte")
    ours = {name: value for name, value in vars(wire).items() if name.isupper() and not name.startswith("_")}
    places = {name: ours.pop(name) for name in ("REMOTE", "BALANCED")}
    assert ours == theirs
    assert len(set(theirs.values())) == len(theirs)
    assert constants(java("Wire"), "int") == {**places, "HEADER": len(wire.frame(wire.END))}


def test_the_prefix_of_an_envelope_is_where_the_bridge_reads_it() -> None:
    text = java("Envelopes")
    assert constants(text, "byte")["MAGIC"] == envelope.MAGIC
    address = envelope.Address(layer=201, partition=0x01020304, place=202)
    data = envelope.encode(address, 0, 0, 0, b"", 0, 0)
    for place, value in (("layer", 201), ("place", 202)):
        found = re.search(
            rf"static int {place}\(byte\[\] envelope\) {{\s+return envelope\[(\d)\] & 0xFF;", text
        )
        assert found is not None, f"Envelopes.{place} reads the {place} in another way"
        assert data[int(found[1])] == value
    found = re.search(r"ByteBuffer\.wrap\(envelope, (\d), (\d)\)\.order\(ByteOrder\.LITTLE_ENDIAN\)", text)
    assert found is not None, "Envelopes.partition reads the partition in another way"
    start, length = map(int, found.groups())
    assert int.from_bytes(data[start : start + length], "little") == address.partition


def test_what_waits_is_counted_by_the_fields_of_envelopes() -> None:
    places = constants(java("Queue"), "int")
    address = envelope.Address(layer=1, partition=2, place=3)
    data = envelope.encode(address, 0x0102, 0x0304, 0, b"", 0x05060708, 0)
    assert len(data) == places["HEADER"]
    for name, size, value in (("STREAM", 2, 0x0102), ("SENDER", 2, 0x0304), ("ITEMS", 4, 0x05060708)):
        at = places[name]
        assert int.from_bytes(data[at : at + size], "little") == value


def test_a_mark_is_no_envelope_with_items_and_has_the_same_fields() -> None:
    found = constants(java("Envelopes"), "byte")["MARK"]
    address = envelope.Address(layer=1, partition=2, place=3)
    data = bytearray(envelope.encode(address, 4, 5, 0x0102030405060708, b"", 0, 0))
    assert constants(java("Envelopes"), "int")["HEADER"] == len(data)
    where = re.search(r"LITTLE_ENDIAN\)\.getLong\((\d+)\)", java("Envelopes"))
    assert where is not None
    assert int.from_bytes(data[int(where[1]) : int(where[1]) + 8], "little") == 0x0102030405060708
    data[3] = found
    with pytest.raises(envelope.EnvelopeError, match="unknown codec"):
        envelope.decode(bytes(data))


def test_columns_of_layers_begin_alike() -> None:
    found = re.search(r'String COLUMN = "(\w+)";', java("Runs"))
    assert found is not None
    assert found[1] == bridge._COLUMN


@pytest.mark.parametrize("name", [PLUGIN, EXTENSIONS, SEALED, LINKS, "org.penstock.bridge.FlowSource"])
def test_classes_named_in_settings_exist(name: str) -> None:
    assert SOURCES.joinpath(*name.split(".")).with_suffix(".java").is_file()


def test_internals_of_spark_are_touched_in_one_place() -> None:
    """All but one package use what Spark documents, or what a source must use to be a source."""
    internal = re.compile(
        r"import org\.apache\.spark\.(?:TaskContext\$|sql\.catalyst\.plans"
        r"|sql\.catalyst\.expressions\.(?!GenericInternalRow)|sql\.(?:classic|execution|internal)|scheduler\.(?!SparkListener)|rpc|shuffle|executor|network)"
    )
    touching = {path.parent.name for path in SOURCES.rglob("*.java") if internal.search(path.read_text())}
    assert touching == {"penstock"}, "only org.apache.spark.penstock may import Spark's internals"


def test_spark_is_pinned() -> None:
    assert version("pyspark") == SPARK_VERSION, PORT
    assert f"pyspark=={SPARK_VERSION}" in (requires("penstock") or [])


@functools.cache
def installed(*names: str) -> dict[str, frozenset[str]]:
    """Public signatures of classes in the installed jars, without modifiers and exceptions."""
    path = os.pathsep.join(str(jar) for jar in sorted((pyspark_home() / "jars").glob("spark-*.jar")))
    home = os.environ.get("JAVA_HOME")
    tool = shutil.which(str(Path(home) / "bin" / "javap")) if home else None
    tool = tool or shutil.which("javap")
    assert tool is not None, (
        "the contract with Spark is read with `javap` of a JDK 17: scripts/install_jdk.sh"
    )
    said = subprocess.run([tool, "-cp", path, *names], capture_output=True, text=True, check=False)
    found = {}
    for shown in said.stdout.split("Compiled from ")[1:]:
        lines = [line.strip().partition(" throws ")[0].rstrip(";") for line in shown.splitlines()[1:]]
        head = re.search(r"(?:class|interface) ([\w.$]+)", lines[0])
        assert head is not None
        found[head[1]] = frozenset(re.sub(r"^(?:(?:public|abstract|static|default) )+", "", n) for n in lines)
    return found


def lacking(name: str, wanted: list[str], found: dict[str, frozenset[str]]) -> str:
    """What a class of Spark lacks, and what to do about it; nothing if it has all."""
    if name not in found:
        return f"{name} is not in the installed pyspark. {PORT}"
    missing = [signature for signature in wanted if signature not in found[name]]
    return f"{name} of the installed pyspark lacks {', '.join(missing)}. {PORT}" if missing else ""


@pytest.mark.parametrize("name", SIGNATURES)
def test_spark_offers_what_the_bridge_needs(name: str) -> None:
    problem = lacking(name, SIGNATURES[name], installed(*SIGNATURES))
    assert not problem, problem


def test_what_is_gone_is_named_and_where_to_port() -> None:
    where = (
        "Penstock supports Spark 4.3.0; port it to another version in"
        " org.apache.spark.penstock.SparkInternals (Java) and penstock/spark/bridge.py (Python)"
    )
    assert lacking("a.Gone", [], {}) == f"a.Gone is not in the installed pyspark. {where}"
    found = {"a.Here": frozenset({"void kept()"})}
    assert lacking("a.Here", ["void kept()"], found) == ""
    assert lacking("a.Here", ["void kept()", "int gone(int)"], found) == (
        f"a.Here of the installed pyspark lacks int gone(int). {where}"
    )
