package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"skerry/internal/record"
	"skerry/internal/topology"
)

// ExportDstat writes TRIAL-NODE.csv into a directory for each node of each trial, and returns the
// number of files. Each file has the layout of dstat's CSV output.
func ExportDstat(d *record.Dir, dir string) (files int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("create %s: %w", dir, err)
	}
	for _, t := range d.Summary.Trials {
		nodes, err := dstatNodes(d, t)
		if err != nil {
			return files, err
		}
		for _, n := range nodes {
			name := fmt.Sprintf("%d-%s.csv", t.ID, strings.TrimPrefix(n.Name, "@"))
			if err := writeDstatFile(filepath.Join(dir, name), n); err != nil {
				return files, err
			}
			files++
		}
	}
	return files, nil
}

func writeDstatFile(path string, n dstatNode) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(n.write(f), f.Close())
}

// dstatNodes returns the nodes of a trial in recorded order. Nodes without a quota have the
// machine's cores.
func dstatNodes(d *record.Dir, t record.Trial) ([]dstatNode, error) {
	rows, err := d.Nodes(t.ID)
	if err != nil {
		return nil, err
	}
	top, err := d.Topology(t.ID)
	if err != nil {
		return nil, err
	}
	var out []dstatNode
	at := map[string]int{}
	for _, r := range rows {
		i, ok := at[r.Node]
		if !ok {
			i = len(out)
			at[r.Node] = i
			n := dstatNode{Name: r.Node, Cores: float64(d.Run.Host.Cores), Memory: d.Run.Host.MemoryBytes}
			// Second 0 follows the setup and the warm-up.
			n.Start = t.Started.Add(time.Duration((t.SetupS + t.WarmupS) * float64(time.Second)))
			if top != nil {
				n.limit(top.Nodes)
			}
			out = append(out, n)
		}
		out[i].Seconds = append(out[i].Seconds, r)
	}
	return out, nil
}

func (n *dstatNode) limit(nodes []topology.Node) {
	for _, x := range nodes {
		if x.Name == n.Name && x.CPU > 0 {
			n.Cores = x.CPU
		}
		if x.Name == n.Name && x.Memory > 0 {
			n.Memory = x.Memory
		}
	}
}

type dstatNode struct {
	Name string
	// Cores is the capacity that equals 100 %.
	Cores float64
	// Memory is in bytes, 0 if unknown.
	Memory int64
	// Start is the beginning of second 0.
	Start   time.Time
	Seconds []record.NodeSecond
}

// write writes the output of "dstat --epoch --cpu --mem --disk --net --output". CPU is in percent:
// wai is always 0, and throttled time counts as idle. Memory, disk and network are in bytes.
func (n dstatNode) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, `"Dstat 0.7.3 CSV output"`)
	fmt.Fprintln(b, `"Author:","Dag Wieers <dag@wieers.com>",,,,"URL:","http://dag.wieers.com/home-made/dstat/"`)
	fmt.Fprintf(b, "\"Host:\",%s,,,,\"User:\",\"skerry\"\n", strconv.Quote(n.Name))
	fmt.Fprintf(b, "\"Cmdline:\",\"dstat --epoch --cpu --mem --disk --net --output\",,,,\"Date:\",%q\n\n",
		n.Start.Format("02 Jan 2006 15:04:05 MST"))
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
		return fmt.Errorf("write seconds of %s: %w", n.Name, err)
	}
	return nil
}

func (n dstatNode) percent(cores float64) float64 {
	if n.Cores <= 0 {
		return 0
	}
	return 100 * cores / n.Cores
}
