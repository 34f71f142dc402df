import java.util.Map;
import org.apache.spark.SparkEnv;

/** Makes a forger of the executor in which Spark SQL calls it by `reflect`. */
public final class OtherSecret {
  private OtherSecret() {}

  /** From now on this executor seals its rows with another secret. Its name. */
  public static String use(String secret) throws ReflectiveOperationException {
    Class<?> known = Class.forName("org.apache.spark.penstock.ShuffleSecret"); // it is compiled without the bridge
    known.getMethod("know", Map.class).invoke(null, Map.of("shuffle.secret", secret));
    return SparkEnv.get().executorId();
  }
}
