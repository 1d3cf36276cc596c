package bridge;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Arrays;

/**
 * Writes replies. Whoever has one while nobody writes becomes the writer and writes
 * also what others add meanwhile: many replies in one system call, and no thread that
 * has to be woken for them.
 */
final class Output {
  private final OutputStream out;
  private byte[] waiting = new byte[1 << 16];
  private int length;
  private byte[] spare = new byte[1 << 16];
  private boolean writing;
  private final Runnable unheard;
  private boolean over; // nobody listens any more

  /** Replies go to out; when nobody listens there, unheard is run, and they go nowhere. */
  Output(OutputStream out, Runnable unheard) {
    this.out = out;
    this.unheard = unheard;
  }

  void send(Reply reply) {
    int body = reply.length - 4;
    for (int i = 0; i < 4; i++) {
      reply.buffer[i] = (byte) (body >>> (24 - 8 * i));
    }
    synchronized (this) {
      if (over) {
        return;
      }
      if (waiting.length - length < reply.length) {
        waiting = Arrays.copyOf(waiting, Math.max(2 * waiting.length, length + reply.length));
      }
      System.arraycopy(reply.buffer, 0, waiting, length, reply.length);
      length += reply.length;
      if (writing) {
        return;
      }
      writing = true;
    }
    drain();
  }

  private void drain() {
    while (true) {
      byte[] now;
      int count;
      synchronized (this) {
        if (length == 0) {
          writing = false;
          return;
        }
        now = waiting;
        count = length;
        waiting = spare;
        length = 0;
      }
      try {
        out.write(now, 0, count);
      } catch (IOException e) {
        synchronized (this) {
          over = true;
        }
        unheard.run();
        return;
      }
      spare = now; // the writer alone touches it
    }
  }
}
