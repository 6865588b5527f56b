package iolab.cassandra;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;

/** What a node counts of itself, by names of ours; null for what this version does not have. */
final class Counters {
  private static final String METRICS = "org.apache.cassandra.metrics:type=";
  private static final long NS_PER_US = 1_000;
  private static final long NS_PER_MS = 1_000_000;

  private final MBeanServerConnection node;
  private final String table;

  Counters(MBeanServerConnection node, String keyspace, String table) {
    this.node = node;
    this.table = METRICS + "Table,keyspace=" + keyspace + ",scope=" + table + ",name=";
  }

  Map<String, Long> now() throws IOException {
    Map<String, Long> told = new LinkedHashMap<>();
    requests(told, "Read", "client_read");
    requests(told, "Write", "client_write");
    table(told);
    told.put("compactions_pending", value("Compaction,name=PendingTasks"));
    told.put("compactions_done", value("Compaction,name=CompletedTasks"));
    told.put("compacted_bytes", count("Compaction,name=BytesCompacted"));
    told.put("commitlog_bytes", value("CommitLog,name=TotalCommitLogSize"));
    told.put("dropped_messages", sum(METRICS + "DroppedMessage,name=Dropped,*", "Count"));
    told.put("reads_waiting", value("ThreadPools,path=request,scope=ReadStage,name=PendingTasks"));
    told.put(
        "writes_waiting", value("ThreadPools,path=request,scope=MutationStage,name=PendingTasks"));
    told.put("key_cache_requests", count("Cache,scope=KeyCache,name=Requests"));
    told.put("key_cache_hits", count("Cache,scope=KeyCache,name=Hits"));
    told.put("chunk_cache_requests", count("Cache,scope=ChunkCache,name=Requests"));
    told.put("chunk_cache_misses", count("Cache,scope=ChunkCache,name=Misses"));
    told.put("exceptions", count("Storage,name=Exceptions"));
    machine(told);
    return told;
  }

  private void requests(Map<String, Long> told, String scope, String name) throws IOException {
    String of = "ClientRequest,scope=" + scope + ",name=";
    told.put(name + "s", count(of + "Latency"));
    told.put(name + "_time_ns", times(count(of + "TotalLatency"), NS_PER_US));
    told.put(name + "_timeouts", count(of + "Timeouts"));
    told.put(name + "_failures", count(of + "Failures"));
    told.put(name + "_unavailables", count(of + "Unavailables"));
  }

  private void table(Map<String, Long> told) throws IOException {
    told.put("table_reads", one(table + "ReadLatency", "Count"));
    told.put("table_read_time_ns", times(one(table + "ReadTotalLatency", "Count"), NS_PER_US));
    told.put("table_writes", one(table + "WriteLatency", "Count"));
    told.put("table_write_time_ns", times(one(table + "WriteTotalLatency", "Count"), NS_PER_US));
    told.put("sstables", one(table + "LiveSSTableCount", "Value"));
    told.put("live_bytes", one(table + "LiveDiskSpaceUsed", "Count"));
    told.put("total_bytes", one(table + "TotalDiskSpaceUsed", "Count"));
    told.put("memtable_bytes", one(table + "AllMemtablesLiveDataSize", "Value"));
    told.put("memtable_switches", one(table + "MemtableSwitchCount", "Count"));
    told.put("flushed_bytes", one(table + "BytesFlushed", "Count"));
    told.put("compaction_written_bytes", one(table + "CompactionBytesWritten", "Count"));
    told.put("estimated_rows", one(table + "EstimatedPartitionCount", "Value"));
  }

  private void machine(Map<String, Long> told) throws IOException {
    Object heap = attribute("java.lang:type=Memory", "HeapMemoryUsage");
    CompositeData usage = heap instanceof CompositeData ? (CompositeData) heap : null;
    told.put("heap_used_bytes", usage == null ? null : whole(usage.get("used")));
    told.put("heap_committed_bytes", usage == null ? null : whole(usage.get("committed")));
    told.put("direct_bytes", one("java.nio:type=BufferPool,name=direct", "MemoryUsed"));
    told.put("collections", sum("java.lang:type=GarbageCollector,*", "CollectionCount"));
    Long paused = sum("java.lang:type=GarbageCollector,*", "CollectionTime");
    told.put("collection_time_ns", times(paused, NS_PER_MS));
    told.put("cpu_ns", one("java.lang:type=OperatingSystem", "ProcessCpuTime"));
    told.put("open_files", one("java.lang:type=OperatingSystem", "OpenFileDescriptorCount"));
  }

  private Long value(String metric) throws IOException {
    return one(METRICS + metric, "Value");
  }

  private Long count(String metric) throws IOException {
    return one(METRICS + metric, "Count");
  }

  private Long one(String name, String attribute) throws IOException {
    return whole(attribute(name, attribute));
  }

  private Long sum(String pattern, String attribute) throws IOException {
    try {
      Long sum = null;
      for (ObjectName name : node.queryNames(new ObjectName(pattern), null)) {
        Long value = whole(node.getAttribute(name, attribute));
        if (value != null) {
          sum = (sum == null ? 0 : sum) + value;
        }
      }
      return sum;
    } catch (JMException gone) {
      return null;
    }
  }

  private Object attribute(String name, String attribute) throws IOException {
    try {
      return node.getAttribute(new ObjectName(name), attribute);
    } catch (InstanceNotFoundException absent) {
      return null;
    } catch (JMException unlike) {
      return null;
    }
  }

  private static Long whole(Object value) {
    if (!(value instanceof Number)) {
      return null;
    }
    double number = ((Number) value).doubleValue();
    boolean none = Double.isNaN(number) || Double.isInfinite(number);
    return none ? null : ((Number) value).longValue();
  }

  private static Long times(Long value, long factor) {
    return value == null ? null : value * factor;
  }
}
