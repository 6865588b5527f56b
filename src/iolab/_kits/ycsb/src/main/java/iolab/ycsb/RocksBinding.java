package iolab.ycsb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB on RocksDB inside the client's own process.
 *
 * <p>A record is one value under its key; an update reads it, changes its fields and writes it whole.
 * All threads share one database, whose properties are those of {@link RocksStore}.
 */
public final class RocksBinding extends DB {
  private static final int LOCKS = 1024;
  private static final Object[] UPDATING = new Object[LOCKS];

  private static RocksStore store;
  private static String failure;
  private static int users;

  static {
    for (int lock = 0; lock < LOCKS; lock++) {
      UPDATING[lock] = new Object();
    }
  }

  @Override
  public void init() throws DBException {
    synchronized (RocksBinding.class) {
      if (failure != null) {
        throw new DBException(failure);
      }
      if (store == null) {
        try {
          store = new RocksStore(getProperties());
          LatencyLogs.open(getProperties());
        } catch (DBException fault) {
          failure = fault.getMessage();
          System.err.println(Complaints.MARK + failure);
          throw fault;
        }
      }
      users++;
    }
  }

  @Override
  public void cleanup() {
    synchronized (RocksBinding.class) {
      if (--users == 0) {
        store.close();
        store = null;
      }
    }
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      byte[] value = store.db.get(key.getBytes(UTF_8));
      if (value == null) {
        return Status.NOT_FOUND;
      }
      Record.of(value).give(fields, result);
      return Status.OK;
    } catch (RocksDBException | RuntimeException fault) {
      return failed("read", fault);
    }
  }

  @Override
  public Status scan(
      String table,
      String first,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try (RocksIterator records = store.db.newIterator()) {
      records.seek(first.getBytes(UTF_8));
      for (; records.isValid() && result.size() < count; records.next()) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        Record.of(records.value()).give(fields, record);
        result.add(record);
      }
      records.status();
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    } catch (RocksDBException | RuntimeException fault) {
      return failed("scan", fault);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    // Two threads that change different fields of a record must not undo each other's.
    synchronized (UPDATING[Math.floorMod(key.hashCode(), LOCKS)]) {
      try {
        byte[] name = key.getBytes(UTF_8);
        byte[] value = store.db.get(name);
        if (value == null) {
          return Status.NOT_FOUND;
        }
        Record record = Record.of(value);
        record.put(values);
        store.db.put(store.writing, name, record.bytes());
        return Status.OK;
      } catch (RocksDBException | RuntimeException fault) {
        return failed("update", fault);
      }
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      Record record = new Record();
      record.put(values);
      store.db.put(store.writing, key.getBytes(UTF_8), record.bytes());
      return Status.OK;
    } catch (RocksDBException | RuntimeException fault) {
      return failed("insert", fault);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      store.db.delete(store.writing, key.getBytes(UTF_8));
      return Status.OK;
    } catch (RocksDBException | RuntimeException fault) {
      return failed("delete", fault);
    }
  }

  private static Status failed(String operation, Exception fault) {
    Complaints.say(operation, fault);
    return Status.ERROR;
  }
}
