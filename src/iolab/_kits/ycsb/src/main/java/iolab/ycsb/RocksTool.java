package iolab.ycsb;

import java.util.Properties;
import org.rocksdb.CompactRangeOptions;
import org.rocksdb.CompactRangeOptions.BottommostLevelCompaction;
import org.rocksdb.FlushOptions;
import org.rocksdb.LiveFileMetaData;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import site.ycsb.DBException;

/**
 * Brings a loaded database to rest and says what it holds, a name and a number a line.
 *
 * <p>Arguments are properties of {@link RocksStore} as NAME=VALUE; without {@code settle} as the
 * first argument nothing is written but RocksDB's own log. Ends with 1 when it fails.
 */
public final class RocksTool {
  private RocksTool() {}

  /** The program. */
  public static void main(String[] words) {
    boolean settle = words.length > 0 && words[0].equals("settle");
    Properties properties = new Properties();
    for (int word = settle ? 1 : 0; word < words.length; word++) {
      int equals = words[word].indexOf('=');
      if (equals < 1) {
        System.err.println(Complaints.MARK + "'" + words[word] + "' is not NAME=VALUE");
        System.exit(2);
      }
      properties.setProperty(words[word].substring(0, equals), words[word].substring(equals + 1));
    }
    try (RocksStore store = new RocksStore(properties)) {
      if (settle) {
        settle(store.db);
      }
      tell(store.db);
    } catch (DBException | RocksDBException fault) {
      System.err.println(Complaints.MARK + Complaints.oneLine(fault));
      System.exit(1);
    }
  }

  /** Nothing is left in memory or to be compacted, and each key is there once. */
  private static void settle(RocksDB db) throws RocksDBException {
    try (FlushOptions flush = new FlushOptions().setWaitForFlush(true);
        CompactRangeOptions whole =
            new CompactRangeOptions()
                .setBottommostLevelCompaction(BottommostLevelCompaction.kForce)) {
      db.flush(flush);
      db.compactRange(null, null, null, whole);
    }
  }

  private static void tell(RocksDB db) throws RocksDBException {
    long keys = 0;
    long valueBytes = 0;
    try (ReadOptions once = new ReadOptions().setFillCache(false).setVerifyChecksums(true);
        RocksIterator records = db.newIterator(once)) {
      for (records.seekToFirst(); records.isValid(); records.next()) {
        Record.of(records.value());
        keys++;
        valueBytes += records.value().length;
      }
      records.status();
    }
    System.out.println("keys " + keys);
    System.out.println("value_bytes " + valueBytes);
    for (int level = 0; level < db.numberLevels(); level++) {
      long files = 0;
      long bytes = 0;
      for (LiveFileMetaData file : db.getLiveFilesMetaData()) {
        if (file.level() == level) {
          files++;
          bytes += file.size();
        }
      }
      System.out.println("level." + level + ".files " + files);
      System.out.println("level." + level + ".bytes " + bytes);
    }
    System.out.println(
        "pending_bytes " + db.getLongProperty("rocksdb.estimate-pending-compaction-bytes"));
    System.out.println(
        "memtable_entries " + db.getLongProperty("rocksdb.num-entries-active-mem-table"));
    System.out.println("end 0");
  }
}
