package org.apache.spark.penstock;

import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Map;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.network.sasl.SecretKeyHolder;

/**
 * What executors prove to each other that they know: Spark's secret where `spark.authenticate` is on, else one that the driver
 * makes for the session and hands to its executors with their settings. Its name keeps it out of what Spark shows and logs.
 */
public final class ShuffleSecret {
  private static final String KEY = "shuffle.secret";
  private static final int BYTES = 32;
  private static volatile String own;

  private ShuffleSecret() {}

  /** In the driver: what the plugin sends to the executors. */
  public static Map<String, String> made(SparkConf conf) {
    if (conf.getBoolean("spark.authenticate", false)) {
      own = null;
      return Map.of();
    }
    byte[] secret = new byte[BYTES];
    new SecureRandom().nextBytes(secret);
    own = HexFormat.of().formatHex(secret);
    return Map.of(KEY, own);
  }

  /** In an executor: what the plugin got. */
  public static void know(Map<String, String> sent) {
    own = sent.get(KEY);
  }

  /** Null if there is none. */
  static SecretKeyHolder holder(SecurityManager sparks) {
    if (sparks.isAuthenticationEnabled()) {
      return sparks;
    }
    String secret = own;
    return secret == null ? null : holding(secret);
  }

  public static SecretKeyHolder holding(String secret) {
    return new SecretKeyHolder() {
      @Override
      public String getSaslUser(String application) {
        return "penstock";
      }

      @Override
      public String getSecretKey(String application) {
        return secret;
      }
    };
  }
}
