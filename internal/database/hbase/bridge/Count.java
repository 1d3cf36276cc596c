package bridge;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AdvancedScanResultConsumer;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.AsyncTable;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.filter.KeyOnlyFilter;

/**
 * The rows of a table, counted by scans of keys alone: all regions at the same time,
 * each from its first key to its last.
 */
final class Count {
  private static final int ROWS_A_CALL = 10_000;

  /** Lines of a server and the rows in its regions. */
  static List<String> of(AsyncConnection c, TableName name) throws Exception {
    AsyncTable<AdvancedScanResultConsumer> table = c.getTable(name);
    Map<String, List<CompletableFuture<Long>>> counts = new TreeMap<>();
    for (HRegionLocation l : c.getRegionLocator(name).getAllRegionLocations().get()) {
      Region region = new Region();
      table.scan(
          new Scan()
              .withStartRow(l.getRegion().getStartKey())
              .withStopRow(l.getRegion().getEndKey())
              .setCaching(ROWS_A_CALL)
              .setCacheBlocks(false)
              .setFilter(new FilterList(new FirstKeyOnlyFilter(), new KeyOnlyFilter())),
          region);
      counts.computeIfAbsent(String.valueOf(l.getServerName()), s -> new ArrayList<>()).add(region.done);
    }
    List<String> lines = new ArrayList<>();
    for (Map.Entry<String, List<CompletableFuture<Long>>> e : counts.entrySet()) {
      long rows = 0;
      for (CompletableFuture<Long> region : e.getValue()) {
        rows += region.get();
      }
      lines.add(e.getKey() + "\t" + rows);
    }
    return lines;
  }

  /** Counts one region's rows and keeps none. */
  private static final class Region implements AdvancedScanResultConsumer {
    final CompletableFuture<Long> done = new CompletableFuture<>();
    private long rows;

    @Override
    public void onNext(Result[] results, ScanController controller) {
      rows += results.length;
    }

    @Override
    public void onError(Throwable error) {
      done.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
      done.complete(rows);
    }
  }

  private Count() {}
}
