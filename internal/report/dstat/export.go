package dstat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/record"
)

// Export writes a file for each node of each trial of a run into a directory, TRIAL-NODE.csv,
// and returns how many. Nodes without a quota have the machine's cores.
func Export(d *record.Dir, dir string) (files int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("making %s: %w", dir, err)
	}
	for _, t := range d.Summary.Trials {
		nodes, err := nodesOf(d, t)
		if err != nil {
			return files, err
		}
		for _, n := range nodes {
			name := fmt.Sprintf("%d-%s.csv", t.ID, strings.TrimPrefix(n.Name, "@"))
			if err := write(filepath.Join(dir, name), n); err != nil {
				return files, err
			}
			files++
		}
	}
	return files, nil
}

func write(path string, n Node) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(n.Write(f), f.Close())
}

// nodesOf collects a trial's nodes, in the order in which they were recorded.
func nodesOf(d *record.Dir, t record.Trial) ([]Node, error) {
	rows, err := d.Nodes(t.ID)
	if err != nil {
		return nil, err
	}
	top, err := d.Topology(t.ID)
	if err != nil {
		return nil, err
	}
	var out []Node
	at := map[string]int{}
	for _, r := range rows {
		i, ok := at[r.Node]
		if !ok {
			i = len(out)
			at[r.Node] = i
			n := Node{Name: r.Node, Cores: float64(d.Run.Host.Cores), Memory: d.Run.Host.MemoryBytes}
			// The measurement began when all was set up and the warm-up was over.
			n.Start = t.Started.Add(seconds(t.SetupS + t.WarmupS))
			if top != nil {
				for _, x := range top.Nodes {
					if x.Name == r.Node && x.CPU > 0 {
						n.Cores = x.CPU
					}
					if x.Name == r.Node && x.Memory > 0 {
						n.Memory = x.Memory
					}
				}
			}
			out = append(out, n)
		}
		out[i].Seconds = append(out[i].Seconds, r)
	}
	return out, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
