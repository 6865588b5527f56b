package iolab.ycsb;

import java.util.Properties;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.CompressionType;
import org.rocksdb.Filter;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteOptions;
import site.ycsb.DBException;

/**
 * An open RocksDB database with every option that matters stated, and no compression.
 *
 * <p>Properties: {@code iolab.database} (its folder), {@code iolab.create} (whether it may be made),
 * {@code iolab.cache_bytes}, {@code iolab.block_bytes}, {@code iolab.bloom_bits},
 * {@code iolab.direct_reads} (past the page cache), {@code iolab.sync} (the log, with each write).
 */
final class RocksStore implements AutoCloseable {
  static final long CACHE_BYTES = 8L << 20;
  static final long BLOCK_BYTES = 4096;
  static final long BLOOM_BITS = 10;

  final RocksDB db;
  final WriteOptions writing;
  private final Options options;
  private final Filter filter;
  private final Cache cache;

  RocksStore(Properties properties) throws DBException {
    Settings settings = new Settings(properties);
    String folder = settings.required("iolab.database");
    boolean create = settings.flag("iolab.create", false);
    boolean direct = settings.flag("iolab.direct_reads", false);
    boolean sync = settings.flag("iolab.sync", false);
    long cacheBytes = settings.whole("iolab.cache_bytes", CACHE_BYTES, 0);
    long blockBytes = settings.whole("iolab.block_bytes", BLOCK_BYTES, 512);
    long bloomBits = settings.whole("iolab.bloom_bits", BLOOM_BITS, 0);
    RocksDB.loadLibrary();
    cache = new LRUCache(cacheBytes);
    filter = bloomBits > 0 ? new BloomFilter(bloomBits, false) : null;
    BlockBasedTableConfig tables =
        new BlockBasedTableConfig().setBlockCache(cache).setBlockSize(blockBytes);
    if (filter != null) {
      tables.setFilterPolicy(filter);
    }
    options =
        new Options()
            .setCreateIfMissing(create)
            .setCompressionType(CompressionType.NO_COMPRESSION)
            .setBottommostCompressionType(CompressionType.NO_COMPRESSION)
            .setUseDirectReads(direct)
            .setUseDirectIoForFlushAndCompaction(direct)
            .setTableFormatConfig(tables);
    writing = new WriteOptions().setSync(sync);
    try {
      db = RocksDB.open(options, folder);
    } catch (RocksDBException fault) {
      throw new DBException("RocksDB cannot open " + folder + ": " + fault.getMessage(), fault);
    }
  }

  @Override
  public void close() {
    db.close();
    writing.close();
    options.close();
    if (filter != null) {
      filter.close();
    }
    cache.close();
  }
}
