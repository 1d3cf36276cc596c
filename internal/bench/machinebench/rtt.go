package machinebench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"skerry/internal/bench/labbench"
	"skerry/internal/bench/linkbench"
	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/run/across"
	"skerry/internal/topology"
)

// RTT is how far measured round trips are from those that were set, on the links of azure8 whose ends are
// on two machines, and on the same links where both ends are on one.
type RTT struct {
	// Beside says what else runs: nothing, or busy (a loop for each core).
	Beside  string `json:"beside"`
	Between string `json:"between"` // encrypted or plain
	Links   int    `json:"links"`
	Samples int    `json:"samples"` // on two machines
	Lost    int    `json:"lost"`
	// One and Two are errors in ms, measured minus set, of the absolute values; medians of rounds.
	One Errors `json:"one_machine"`
	Two Errors `json:"two_machines"`
}

// Errors in ms.
type Errors struct {
	Mean float64 `json:"mean_ms"`
	P99  float64 `json:"p99_ms"`
	Max  float64 `json:"max_ms"`
}

const echoInterval = 50 * time.Millisecond

func (o Options) rtt(ctx context.Context) (all []RTT, err error) {
	r, err := newRoom(o.Exe, 2)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, between := range []string{across.Encrypted, across.Plain} {
		for _, beside := range []string{"nothing", "busy"} {
			x, err := o.rttBeside(ctx, r, between, beside)
			if err != nil {
				return all, err
			}
			all = append(all, x)
		}
	}
	return all, nil
}

func (o Options) rttBeside(ctx context.Context, r *room, between, beside string) (x RTT, err error) {
	x = RTT{Beside: beside, Between: between}
	cloud, err := topology.Load("azure8")
	if err != nil {
		return x, err
	}
	apart := map[string]string{}
	for i, n := range cloud.Nodes {
		apart[n.Name] = r.machines.Machines[i%2].Name
	}
	if beside == "busy" {
		stop, err := linkbench.Occupy()
		if err != nil {
			return x, err
		}
		defer stop()
	}
	var one, two []Errors
	for i := range o.Rounds {
		for _, place := range []map[string]string{{"*": "m1"}, apart} {
			o.Progress(fmt.Sprintf("round trips of %d links, %s, beside %s, %d of %d", len(cloud.Links), between, beside, i+1, o.Rounds))
			err := r.on(ctx, o, lab.Config{Topology: cloud}, across.Terms{Place: place, Between: between}, func(l *lab.Lab) error {
				links := slices.DeleteFunc(l.Links(), func(k lab.Link) bool { return apart[k.A] == apart[k.B] })
				got, err := l.Echo(ctx, links, o.Echoes, echoInterval)
				if err != nil {
					return err
				}
				var errs []time.Duration
				lost := 0
				for i, g := range got {
					want := links[i].AB.Latency + links[i].BA.Latency + linkbench.Transmission(links[i].AB) + linkbench.Transmission(links[i].BA)
					lost += g.Lost
					for _, s := range g.Samples {
						errs = append(errs, (s - want).Abs())
					}
				}
				if len(place) == 1 {
					one = append(one, errorsOf(errs))
					return nil
				}
				two = append(two, errorsOf(errs))
				x.Links, x.Samples, x.Lost = len(links), x.Samples+len(errs), x.Lost+lost
				return nil
			})
			if err != nil {
				return x, err
			}
		}
	}
	x.One, x.Two = middle(one), middle(two)
	return x, nil
}

func errorsOf(all []time.Duration) Errors {
	if len(all) == 0 {
		return Errors{}
	}
	slices.Sort(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return Errors{
		Mean: labbench.Milliseconds(sum / time.Duration(len(all))),
		P99:  labbench.Milliseconds(all[len(all)*99/100]), Max: labbench.Milliseconds(all[len(all)-1]),
	}
}

func middle(all []Errors) Errors {
	pick := func(of func(Errors) float64) float64 {
		var list []float64
		for _, e := range all {
			list = append(list, of(e))
		}
		return stats.Median(list)
	}
	return Errors{
		Mean: pick(func(e Errors) float64 { return e.Mean }), P99: pick(func(e Errors) float64 { return e.P99 }),
		Max: pick(func(e Errors) float64 { return e.Max }),
	}
}
