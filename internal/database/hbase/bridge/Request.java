package bridge;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * One request. All numbers are big-endian; a name is its length in 2 bytes and UTF-8.
 *
 * <pre>
 *   length 4 │ id 8 │ operation 1 │ milliseconds left 4 │ arguments
 *
 *   READ, SCAN   table, key, limit 4, count 2 of fields, their names
 *   WRITE        table, count 4 of records, each key, count 2 of fields, each its name,
 *                length 4, value
 *   DELETE       table, key
 *   ADMINISTER   count 2 of words, each length 4 and UTF-8
 * </pre>
 */
final class Request {
  static final int HEADER = 13;
  static final byte READ = 1;
  static final byte SCAN = 2;
  static final byte WRITE = 3;
  static final byte DELETE = 4;
  static final byte ADMINISTER = 5;

  final long id;
  final byte operation;
  /** When nobody waits for the reply any more, by System.nanoTime. */
  final long deadline;

  final String table;
  /** Of a write, its first record's. */
  final byte[] key;
  final int limit;
  final byte[][] names;
  final Put[] puts;
  final String[] words;

  /** A record to be written. */
  static final class Put {
    final byte[] key;
    final byte[][] names;
    final byte[][] values;

    Put(ByteBuffer in) {
      key = name(in);
      int fields = in.getShort() & 0xffff;
      names = new byte[fields][];
      values = new byte[fields][];
      for (int i = 0; i < fields; i++) {
        names[i] = name(in);
        values[i] = bytes(in, in.getInt());
      }
    }
  }

  Request(ByteBuffer in) {
    id = in.getLong();
    operation = in.get();
    deadline = System.nanoTime() + in.getInt() * 1_000_000L;
    if (operation == ADMINISTER) {
      words = new String[in.getShort()];
      for (int i = 0; i < words.length; i++) {
        words[i] = new String(bytes(in, in.getInt()), StandardCharsets.UTF_8);
      }
      table = null;
      key = null;
      limit = 0;
      names = null;
      puts = null;
      return;
    }
    words = null;
    table = new String(name(in), StandardCharsets.UTF_8);
    if (operation == WRITE) {
      puts = new Put[in.getInt()];
      for (int i = 0; i < puts.length; i++) {
        puts[i] = new Put(in);
      }
      key = puts[0].key;
      limit = 0;
      names = null;
      return;
    }
    puts = null;
    key = name(in);
    limit = operation == DELETE ? 0 : in.getInt();
    names = new byte[operation == DELETE ? 0 : in.getShort() & 0xffff][];
    for (int i = 0; i < names.length; i++) {
      names[i] = name(in);
    }
  }

  private static byte[] name(ByteBuffer in) {
    return bytes(in, in.getShort() & 0xffff);
  }

  private static byte[] bytes(ByteBuffer in, int length) {
    byte[] b = new byte[length];
    in.get(b);
    return b;
  }
}
