package bridge;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.AsyncAdmin;
import org.apache.hadoop.hbase.client.AsyncConnection;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsLocatedFileStatus;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/**
 * What is asked of the cluster itself: a verb and its arguments; the answer is lines of
 * words, tabs between them. Each question has a thread of its own while it lasts.
 */
final class Administration {
  private final Cluster cluster;
  private final Output out;
  private final ExecutorService threads =
      Executors.newCachedThreadPool(
          r -> {
            Thread t = new Thread(r, "administration");
            t.setDaemon(true);
            return t;
          });

  Administration(Cluster cluster, Output out) {
    this.cluster = cluster;
    this.out = out;
  }

  void start(Request request) {
    threads.execute(
        () -> {
          Reply reply;
          try {
            reply = new Reply(request.id, Reply.OK, 0).lines(answer(request.words));
          } catch (Throwable e) {
            Verdict v = Verdict.of(e);
            byte status = v.refused ? Reply.FAILED : Reply.UNKNOWN;
            reply = new Reply(request.id, status, 0).name(v.type).name("").name(v.message());
          }
          out.send(reply);
        });
  }

  private List<String> answer(String[] words) throws Exception {
    switch (words[0]) {
      case "datanodes":
        return dataNodes();
      case "datanodes-changed":
        dfs().refreshNodes();
        return List.of();
      case "redundancy":
        return List.of(String.valueOf(lacking()));
      case "logs":
        return logs();
      default:
        AsyncConnection c = cluster.connect().get();
        return answer(c, c.getAdmin(), words);
    }
  }

  private List<String> answer(AsyncConnection c, AsyncAdmin admin, String[] words) throws Exception {
    switch (words[0]) {
      case "status":
        return status(admin);
      case "create":
        create(admin, words);
        return List.of();
      case "truncate":
        truncate(admin, TableName.valueOf(words[1]));
        return List.of();
      case "drop":
        drop(admin, TableName.valueOf(words[1]));
        return List.of();
      case "version":
        return List.of(
            admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.HBASE_VERSION)).get().getHBaseVersion());
      case "count":
        return Count.of(c, TableName.valueOf(words[1]));
      case "places":
        return places(c, TableName.valueOf(words[1]));
      case "balance":
        return List.of(String.valueOf(admin.balance().get()));
      case "decommission":
        admin.decommissionRegionServers(List.of(ServerName.valueOf(words[1])), true).get();
        return List.of();
      case "regions":
        return List.of(String.valueOf(admin.getRegions(ServerName.valueOf(words[1])).get().size()));
      case "roll":
        admin.rollWALWriter(ServerName.valueOf(words[1])).get();
        return List.of();
      default:
        throw new IllegalArgumentException("unknown verb " + words[0]);
    }
  }

  /** Removes a table, if it exists. */
  private static void drop(AsyncAdmin admin, TableName table) throws Exception {
    if (!admin.tableExists(table).get()) {
      return;
    }
    if (!admin.isTableDisabled(table).get()) {
      await(admin.disableTable(table), () -> admin.isTableDisabled(table));
    }
    await(admin.deleteTable(table), () -> admin.tableExists(table).thenApply(there -> !there));
  }

  private static void truncate(AsyncAdmin admin, TableName table) throws Exception {
    await(admin.disableTable(table), () -> admin.isTableDisabled(table));
    await(admin.truncateTable(table, true), () -> admin.isTableEnabled(table));
  }

  /**
   * Waits until what a procedure of the master is for has come about. The client asks after a
   * procedure at intervals that double, so that one of 2.6 s is known to have ended after 4.1 s.
   * A question that fails is no answer: for a moment a table that is made anew is not there.
   */
  private static void await(
      CompletableFuture<Void> procedure, Supplier<CompletableFuture<Boolean>> done)
      throws Exception {
    while (!procedure.isDone() && !done.get().exceptionally(e -> false).get()) {
      Thread.sleep(100);
    }
    if (procedure.isDone()) {
      procedure.get(); // throws what made it fail
    }
  }

  /** Fails while the master initialises. Servers are named HOST,PORT,START. */
  private static List<String> status(AsyncAdmin admin) throws Exception {
    admin.listTableNames().get(); // refused by a master that is initialising
    ClusterMetrics m =
        admin
            .getClusterMetrics(
                EnumSet.of(
                    ClusterMetrics.Option.SERVERS_NAME,
                    ClusterMetrics.Option.DEAD_SERVERS,
                    ClusterMetrics.Option.REGIONS_IN_TRANSITION))
            .get();
    List<String> lines = new ArrayList<>();
    for (ServerName s : m.getServersName()) {
      lines.add("live\t" + s);
    }
    for (ServerName s : m.getDeadServerNames()) {
      lines.add("dead\t" + s);
    }
    for (ServerName s : admin.listDecommissionedRegionServers().get()) {
      lines.add("draining\t" + s);
    }
    m.getRegionStatesInTransition().forEach(r -> lines.add("transition\t" + r.toDescriptiveString()));
    return lines;
  }

  /** create TABLE FAMILY DURABILITY SPLIT...; a table that exists stays as it is. */
  private static void create(AsyncAdmin admin, String[] words) throws Exception {
    TableDescriptorBuilder table =
        TableDescriptorBuilder.newBuilder(TableName.valueOf(words[1]))
            .setDurability(Durability.valueOf(words[3]))
            .setColumnFamily(ColumnFamilyDescriptorBuilder.of(words[2]));
    byte[][] splits = Arrays.stream(words).skip(4).map(Bytes::toBytes).toArray(byte[][]::new);
    try {
      if (splits.length == 0) {
        admin.createTable(table.build()).get();
      } else {
        admin.createTable(table.build(), splits).get();
      }
    } catch (ExecutionException e) {
      if (!(e.getCause() instanceof TableExistsException)) {
        throw e;
      }
    }
  }

  /** How many regions of a table each server has. */
  private static List<String> places(AsyncConnection c, TableName table) throws Exception {
    Map<String, Integer> regions = new TreeMap<>();
    for (HRegionLocation l : c.getRegionLocator(table).getAllRegionLocations().get()) {
      regions.merge(String.valueOf(l.getServerName()), 1, Integer::sum);
    }
    List<String> lines = new ArrayList<>();
    regions.forEach((server, n) -> lines.add(server + "\t" + n));
    return lines;
  }

  /** The folders of write-ahead logs: one a server, HOST,PORT,START with what becomes of it. */
  private List<String> logs() throws IOException {
    Path root = new Path(cluster.conf.get(HConstants.HBASE_DIR));
    FileSystem fs = root.getFileSystem(cluster.conf);
    List<String> lines = new ArrayList<>();
    try {
      for (FileStatus f : fs.listStatus(new Path(root, HConstants.HREGION_LOGDIR_NAME))) {
        lines.add(f.getPath().getName());
      }
    } catch (FileNotFoundException e) {
      return List.of(); // nobody has written any
    }
    return lines;
  }

  /**
   * How many blocks have fewer copies than they are to have, on nodes that live and stay; those
   * that are being written are left out. The NameNode's own count leaves out, too, those whose
   * copies it has ordered and has not got yet, and for some seconds those of a node that it
   * calls dead already.
   */
  private long lacking() throws IOException {
    Set<String> live = new HashSet<>();
    for (DatanodeInfo d : dfs().getDataNodeStats(DatanodeReportType.LIVE)) {
      if (d.isInService()) {
        live.add(d.getDatanodeUuid());
      }
    }
    long n = 0;
    RemoteIterator<LocatedFileStatus> files = dfs().listFiles(new Path("/"), true);
    while (files.hasNext()) {
      HdfsLocatedFileStatus file = (HdfsLocatedFileStatus) files.next();
      LocatedBlocks blocks = file.getLocatedBlocks();
      boolean open = blocks.isUnderConstruction() && !blocks.isLastBlockComplete();
      int finished = blocks.locatedBlockCount() - (open ? 1 : 0);
      for (LocatedBlock b : blocks.getLocatedBlocks().subList(0, Math.max(0, finished))) {
        long copies = Arrays.stream(b.getLocations()).filter(d -> live.contains(d.getDatanodeUuid())).count();
        if (copies < file.getReplication()) {
          n++;
        }
      }
    }
    return n;
  }

  private DistributedFileSystem dfs() throws IOException {
    return (DistributedFileSystem) FileSystem.get(cluster.conf);
  }

  /** ADDRESS, live or dead, its state of administration, and when it was heard of, in ms. */
  private List<String> dataNodes() throws IOException {
    List<String> lines = new ArrayList<>();
    for (DatanodeInfo d : dfs().getDataNodeStats(DatanodeReportType.LIVE)) {
      lines.add(d.getXferAddr() + "\tlive\t" + d.getAdminState().name() + "\t" + d.getLastUpdate());
    }
    for (DatanodeInfo d : dfs().getDataNodeStats(DatanodeReportType.DEAD)) {
      lines.add(d.getXferAddr() + "\tdead\t" + d.getAdminState().name() + "\t" + d.getLastUpdate());
    }
    return lines;
  }
}
