package bridge;

import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.UnknownHostException;
import java.util.concurrent.CompletionException;
import org.apache.hadoop.hbase.CallDroppedException;
import org.apache.hadoop.hbase.CallQueueTooBigException;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.NotServingRegionException;
import org.apache.hadoop.hbase.PleaseHoldException;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.TableNotEnabledException;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.NoServerForRegionException;
import org.apache.hadoop.hbase.client.RetriesExhaustedException;
import org.apache.hadoop.hbase.exceptions.ConnectionClosedException;
import org.apache.hadoop.hbase.exceptions.ConnectionClosingException;
import org.apache.hadoop.hbase.ipc.CallTimeoutException;
import org.apache.hadoop.hbase.ipc.FailedServerException;
import org.apache.hadoop.hbase.ipc.RemoteWithExtrasException;
import org.apache.hadoop.hbase.ipc.ServerNotRunningYetException;
import org.apache.hadoop.hbase.ipc.ServerTooBusyException;
import org.apache.hadoop.hbase.regionserver.RegionServerStoppedException;
import org.apache.hbase.thirdparty.io.netty.channel.ConnectTimeoutException;

/** What an attempt's exception says about what became of it. */
final class Verdict {
  final String type;
  /** The server certainly did not carry it out. */
  final boolean refused;
  /** Another attempt may end otherwise. */
  final boolean again;
  final Throwable cause;

  private Verdict(String type, boolean refused, boolean again, Throwable cause) {
    this.type = type;
    this.refused = refused;
    this.again = again;
    this.cause = cause;
  }

  /** The verdict on an operation that was not sent: its region was not found. */
  static Verdict unlocated(Throwable thrown) {
    Verdict v = of(thrown);
    return new Verdict(v.refused ? v.type : "unlocated", true, v.again, v.cause);
  }

  static Verdict of(Throwable thrown) {
    Throwable t = thrown;
    while ((t instanceof CompletionException || t instanceof RetriesExhaustedException)
        && t.getCause() != null
        && !(t instanceof NoServerForRegionException)) {
      t = t.getCause();
    }
    if (t instanceof RemoteWithExtrasException) {
      t = ((RemoteWithExtrasException) t).unwrapRemoteException();
    }
    if (t instanceof NotServingRegionException || t instanceof NoServerForRegionException) {
      return new Verdict("not_serving", true, true, t); // moved, opening, closing
    }
    if (t instanceof RegionTooBusyException) {
      return new Verdict("region_too_busy", true, true, t);
    }
    if (t instanceof CallQueueTooBigException
        || t instanceof CallDroppedException
        || t instanceof ServerTooBusyException) {
      return new Verdict("server_too_busy", true, true, t);
    }
    if (t instanceof RegionServerStoppedException) { // thrown before anything is done
      return new Verdict("server_stopping", true, true, t);
    }
    if (t instanceof ServerNotRunningYetException || t instanceof PleaseHoldException) {
      return new Verdict("server_starting", true, true, t);
    }
    if (t instanceof TableNotFoundException || t instanceof TableNotEnabledException) {
      return new Verdict("no_table", true, false, t);
    }
    if (t instanceof ConnectTimeoutException) {
      return new Verdict("connect_timeout", true, true, t);
    }
    if (t instanceof NoRouteToHostException || t instanceof UnknownHostException) {
      return new Verdict("unreachable", true, true, t);
    }
    if (t instanceof ConnectException || t instanceof FailedServerException) {
      return new Verdict("refused", true, true, t);
    }
    if (t instanceof CallTimeoutException) {
      return new Verdict("timeout", false, true, t);
    }
    if (t instanceof ConnectionClosedException || t instanceof ConnectionClosingException) {
      return new Verdict("reset", false, true, t);
    }
    if (t instanceof DoNotRetryIOException) { // a request that makes no sense to the server
      return new Verdict("error", true, false, t);
    }
    return new Verdict("error", false, true, t);
  }

  String message() {
    String m = String.valueOf(cause.getMessage());
    int end = m.indexOf('\n'); // a server's exception comes with its stack
    return cause.getClass().getSimpleName() + ": " + (end < 0 ? m : m.substring(0, end));
  }
}
