// Package dstat writes what a node used in the layout of dstat's CSV output, which plots and
// scripts of older measurements read.
package dstat

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"skerry/internal/record"
)

// Node is one node of a trial.
type Node struct {
	Name string
	// Cores are its virtual processors: what 100 % is.
	Cores float64
	// Memory is how much it has, in bytes; 0 where nobody knows.
	Memory int64
	// Start is when the measurement began.
	Start   time.Time
	Seconds []record.NodeSecond
}

// Write writes the node's seconds as "dstat --epoch --cpu --mem --disk --net --output" does:
// five lines about the file, two of headings, a row a second. CPU is in percent, wai is always
// 0 and what the quota held back idle; memory, disk and network are in bytes.
func (n Node) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, `"Dstat 0.7.3 CSV output"`)
	fmt.Fprintln(b, `"Author:","Dag Wieers <dag@wieers.com>",,,,"URL:","http://dag.wieers.com/home-made/dstat/"`)
	fmt.Fprintf(b, "\"Host:\",%s,,,,\"User:\",\"skerry\"\n", strconv.Quote(n.Name))
	fmt.Fprintf(b, "\"Cmdline:\",\"dstat --epoch --cpu --mem --disk --net --output\",,,,\"Date:\",%q\n\n", n.Start.Format("02 Jan 2006 15:04:05 MST"))
	fmt.Fprintln(b, `"epoch","total cpu usage",,,,,"memory usage",,,,"dsk/total",,"net/total",`)
	fmt.Fprintln(b, `"epoch","usr","sys","idl","wai","stl","used","free","buff","cach","read","writ","recv","send"`)
	for _, s := range n.Seconds {
		user, system, steal := n.percent(s.User), n.percent(s.System), n.percent(s.Steal)
		idle := max(0, 100-user-system-steal)
		free := max(0, n.Memory-s.Memory)
		epoch := float64(n.Start.Add(time.Duration(s.T)*time.Second).UnixMilli()) / 1000
		fmt.Fprintf(b, "%.3f,%.3f,%.3f,%.3f,0.0,%.3f,%d,%d,0,0,%d,%d,%d,%d\n",
			epoch, user, system, idle, steal, s.Memory, free, s.ReadBytes, s.WroteBytes, s.RxBytes, s.TxBytes)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("writing the seconds of %s: %w", n.Name, err)
	}
	return nil
}

// percent is a share of the node's processors.
func (n Node) percent(cores float64) float64 {
	if n.Cores <= 0 {
		return 0
	}
	return 100 * cores / n.Cores
}
