package org.apache.spark.penstock;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.sasl.SecretKeyHolder;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * A keyed MAC behind the bytes of a row, over these, its shuffle and its partition. The row stays a row of Spark SQL: nobody looks
 * at what lies behind its fields.
 */
public final class RowSeal {
  private static final String ALGORITHM = "HmacSHA256";
  private static final int BYTES = 32; // a multiple of eight, as the size of a row must be

  private final Mac mac;
  private final int shuffle;

  public RowSeal(String secret, int shuffle) {
    this.shuffle = shuffle;
    try {
      mac = Mac.getInstance(ALGORITHM);
      mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), ALGORITHM));
    } catch (GeneralSecurityException impossible) { // every Java has it
      throw new IllegalStateException(impossible);
    }
  }

  /** With the secret of this application; without one nothing goes from executor to executor. */
  public static RowSeal of(int shuffle) {
    SparkEnv env = SparkEnv.get();
    SecretKeyHolder secrets = ShuffleSecret.holder(env.securityManager());
    if (secrets == null) {
      throw new SecurityException("the rows of shuffle " + shuffle + " cannot be sealed, so they are not sent:"
          + " spark.authenticate is off, and the Penstock plugin, which would make a secret, is not loaded");
    }
    return new RowSeal(secrets.getSecretKey(env.conf().getAppId()), shuffle);
  }

  /** A copy with its seal. */
  public UnsafeRow sealed(int partition, UnsafeRow row) {
    int size = row.getSizeInBytes();
    byte[] bytes = new byte[size + BYTES];
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), bytes, Platform.BYTE_ARRAY_OFFSET, size);
    System.arraycopy(seal(partition, bytes, 0, size), 0, bytes, size, BYTES);
    UnsafeRow sealed = new UnsafeRow(row.numFields());
    sealed.pointTo(bytes, bytes.length);
    return sealed;
  }

  /** Cuts the seal off; a row that has another one was not sent by an executor of this application to this task. */
  public void open(int partition, UnsafeRow row) {
    int size = row.getSizeInBytes() - BYTES;
    byte[] bytes = (byte[]) row.getBaseObject();
    int begin = (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET);
    if (size < 0 || !MessageDigest.isEqual(seal(partition, bytes, begin, size), found(bytes, begin + size))) {
      Refusals.note("shuffle " + shuffle, "a row without the seal of this application");
      throw new SecurityException(
          "shuffle " + shuffle + " brought a row that no executor of this application has sealed");
    }
    row.pointTo(bytes, row.getBaseOffset(), size);
  }

  private byte[] seal(int partition, byte[] bytes, int begin, int size) {
    mac.update(ByteBuffer.allocate(2 * Integer.BYTES).putInt(shuffle).putInt(partition).flip());
    mac.update(bytes, begin, size);
    return mac.doFinal();
  }

  private static byte[] found(byte[] bytes, int begin) {
    return Arrays.copyOfRange(bytes, begin, begin + BYTES);
  }
}
