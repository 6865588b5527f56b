package iolab.ycsb;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;

/** A record as one value: each field's name and bytes, in the order of their names. */
final class Record {
  private final TreeMap<String, byte[]> fields = new TreeMap<>();

  /** The record in these bytes; IllegalArgumentException if there is none. */
  static Record of(byte[] value) {
    Record record = new Record();
    try (DataInputStream from = new DataInputStream(new ByteArrayInputStream(value))) {
      while (from.available() > 0) {
        String name = from.readUTF();
        int size = from.readInt();
        if (size < 0 || size > from.available()) {
          throw new IllegalArgumentException("A record ends in the middle of '" + name + "'.");
        }
        byte[] bytes = new byte[size];
        from.readFully(bytes);
        record.fields.put(name, bytes);
      }
    } catch (IOException fault) {
      throw new IllegalArgumentException("A record cannot be read.", fault);
    }
    return record;
  }

  void put(Map<String, ByteIterator> values) {
    for (Map.Entry<String, ByteIterator> value : values.entrySet()) {
      fields.put(value.getKey(), value.getValue().toArray());
    }
  }

  /** Give the fields of these names, all of them for {@code null}. */
  void give(Set<String> wanted, Map<String, ByteIterator> result) {
    for (Map.Entry<String, byte[]> field : fields.entrySet()) {
      if (wanted == null || wanted.contains(field.getKey())) {
        result.put(field.getKey(), new ByteArrayByteIterator(field.getValue()));
      }
    }
  }

  byte[] bytes() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream to = new DataOutputStream(bytes)) {
      for (Map.Entry<String, byte[]> field : fields.entrySet()) {
        to.writeUTF(field.getKey());
        to.writeInt(field.getValue().length);
        to.write(field.getValue());
      }
    } catch (IOException never) {
      throw new UncheckedIOException(never);
    }
    return bytes.toByteArray();
  }
}
