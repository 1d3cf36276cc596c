package shell

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"skerry/internal/metadata/server"
)

// WriteStatus prints a server's status as a table.
func WriteStatus(out io.Writer, s server.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	t, j := s.Tree, s.Journal
	fmt.Fprintf(w, "directories\t%d\n", t.Directories)
	fmt.Fprintf(w, "files\t%d, %d bytes\n", t.Files, t.Bytes)
	fmt.Fprintf(w, "journal\t%d records, %d bytes of log, %d fsyncs\n", j.Index, j.LogBytes, j.Groups)
	fmt.Fprintf(w, "snapshot\tof %d records, %d bytes\n", j.SnapshotIndex, j.SnapshotBytes)
	if j.Broken != "" {
		fmt.Fprintf(w, "writes\trefused: %s\n", j.Broken)
	}
	fmt.Fprintf(w, "locks\twaited %d times, %s in all; %d reads began again\n", t.LockWaits, time.Duration(t.LockWaitNS), t.ReadRetries)
	fmt.Fprintf(w, "running for\t%s, after a recovery of %s\n", time.Duration(s.Uptime*float64(time.Second)).Round(time.Second), s.Recovery.Took.Round(time.Millisecond))
	for _, path := range slices.Sorted(maps.Keys(s.Subtrees)) {
		fmt.Fprintf(w, "%s\tis on %s\n", path, s.Subtrees[path])
	}
	return w.Flush()
}
