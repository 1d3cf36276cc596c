package netprofile

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/unit"
	"skerry/internal/topology"
)

// Topology encodes the profile as a topology: a site for each site of the machines, or for each machine without one; a node
// for each machine; a link for each measured pair. It returns ErrNoData without pairs.
func (p Profile) Topology() ([]byte, error) {
	sites, nodes := p.names()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What lies between machines: measured from %s on, for %v, by skerry machines measure.\n", p.Began.UTC().Format("2006-01-02 15:04:05 UTC"), unit.Duration(p.lasted()))
	fmt.Fprintln(&b, "# Latency, jitter and loss are halves of round trips' between programs. A bandwidth is what TCP got.")
	fmt.Fprintln(&b, "name: measured\nsites:")
	for _, s := range sites {
		fmt.Fprintf(&b, "  - {name: %s, nodes: %d} # %s\n", s.name, len(s.machines), strings.Join(s.machines, ", "))
	}
	var links bytes.Buffer
	missing := false
	for _, x := range p.Pairs {
		if x.Sent == x.Lost {
			missing = true
			fmt.Fprintf(&links, "  # %s and %s did not answer each other\n", x.From, x.To)
			continue
		}
		fmt.Fprintf(&links, "  # %d of %d echoes lost; %.2f ms in half of the cases, %.2f to %.2f in nine of ten, %.2f at most\n", x.Lost, x.Sent, x.RTT.P50, x.RTT.P5, x.RTT.P95, x.RTT.Max)
		fmt.Fprintf(&links, "  - {between: [%s, %s], %s}\n", nodes[x.From], nodes[x.To], x.quality())
	}
	if !strings.Contains(links.String(), "between") {
		return nil, ErrNoData
	}
	if missing {
		fmt.Fprintln(&b, "connect: none # some did not answer")
	} else {
		fmt.Fprintln(&b, "connect: full")
	}
	fmt.Fprintf(&b, "links:\n%s", links.Bytes())
	return b.Bytes(), check(b.Bytes())
}

func (p Profile) lasted() time.Duration {
	return time.Duration(p.Seconds * float64(time.Second)).Round(time.Second)
}

// quality formats a link's quality. It includes zero jitter and loss, so that an experiment's defaults do not apply.
func (x PairProfile) quality() string {
	s := x.Shape
	all := []string{"rtt: " + milliseconds(s.RTTMS), "jitter: " + milliseconds(s.JitterMS)}
	if s.Distribution != "" {
		all = append(all, "distribution: "+string(s.Distribution))
	}
	all = append(all, "loss: "+share(s.Loss))
	switch {
	case x.There > 0 && x.Back > 0:
		all = append(all, fmt.Sprintf("forward: {bandwidth: %s}, back: {bandwidth: %s}", rate(x.There), rate(x.Back)))
	case x.There > 0 || x.Back > 0:
		all = append(all, "bandwidth: "+rate(max(x.There, x.Back)))
	}
	return strings.Join(all, ", ")
}

func milliseconds(ms float64) string {
	return unit.Duration(time.Duration(math.Round(ms*1000)) * time.Microsecond).String()
}

func share(f float64) string { return unit.Fraction(math.Round(f*1e5) / 1e5).String() }

// rate formats a rate with three digits.
func rate(bps int64) string {
	step := int64(math.Pow10(max(0, len(fmt.Sprint(bps))-3)))
	return unit.Bandwidth((bps + step/2) / step * step).String()
}

type site struct {
	name     string
	machines []string
}

// names returns the sites, and the name that the topology gives to each machine's node.
func (p Profile) names() (sites []site, nodes map[string]string) {
	at, place := map[string]int{}, map[string]int{}
	for _, m := range p.Machines {
		if m.Problem != "" {
			continue
		}
		name := m.Site
		if name == "" {
			name = m.Name
		}
		if _, known := at[name]; !known {
			at[name] = len(sites)
			sites = append(sites, site{name: siteName(name)})
		}
		s := &sites[at[name]]
		s.machines = append(s.machines, m.Name)
		place[m.Name] = len(s.machines)
	}
	nodes = map[string]string{}
	for _, s := range sites {
		for _, m := range s.machines {
			nodes[m] = s.name
			if len(s.machines) > 1 {
				nodes[m] = fmt.Sprintf("%s-%d", s.name, place[m])
			}
		}
	}
	return sites, nodes
}

// Site names contain no other bytes, and at most 25 if several nodes are numbered.
var unsafeChars = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

const longest = 25

// siteName converts any name to a valid site name.
func siteName(name string) string {
	name = strings.TrimLeft(unsafeChars.ReplaceAllString(name, "-"), "._-")
	if name == "" {
		name = "site"
	}
	return name[:min(len(name), longest)]
}

// check parses a topology.
func check(text []byte) error {
	root, err := strict.Parse("topology", text)
	if err != nil {
		return fmt.Errorf("writing the topology: %w", err)
	}
	var s topology.Spec
	if ps := strict.Decode(root, &s, ""); len(ps) > 0 {
		return fmt.Errorf("writing the topology: %w", ps)
	}
	if _, err := s.Build(".", os.ReadFile); err != nil {
		return fmt.Errorf("writing the topology: %w", err)
	}
	return nil
}

// change, in ms, is the smallest change of a direction that a trace reports.
const change = 0.01

// row is one window of a pair.
type row struct {
	at      float64 // s
	pair    int
	latency float64 // ms, one way; NaN where nothing came back
	loss    float64 // of one way
}

// Trace encodes round trips and losses as a trace for an experiment's drift: a row for each direction and Window in which
// they changed. docs/experiment-reference.md describes the columns time_s, from, to, latency_ms (one way) and loss.
func (p Profile) Trace() ([]byte, error) {
	_, nodes := p.names()
	var rows []row
	for i, x := range p.Pairs {
		if x.Sent > x.Lost {
			rows = append(rows, x.rows(i, time.Duration(p.EveryMS*float64(time.Millisecond)))...)
		}
	}
	if len(rows) == 0 {
		return nil, ErrNoData
	}
	slices.SortStableFunc(rows, func(a, b row) int { return int(a.at*1000) - int(b.at*1000) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What lay between machines from %s on. In an experiment: drift: {trace: this file}.\n", p.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	fmt.Fprintln(&b, "time_s,from,to,latency_ms,loss")
	for _, r := range rows {
		latency := ""
		if !math.IsNaN(r.latency) {
			latency = fmt.Sprintf("%.3f", r.latency)
		}
		x := p.Pairs[r.pair]
		for _, ends := range [][2]string{{nodes[x.From], nodes[x.To]}, {nodes[x.To], nodes[x.From]}} {
			fmt.Fprintf(&b, "%g,%s,%s,%s,%s\n", r.at, ends[0], ends[1], latency, share(r.loss))
		}
	}
	return b.Bytes(), nil
}

// rows returns the windows in which the pair changed.
func (x PairProfile) rows(pair int, every time.Duration) (rows []row) {
	last := row{latency: math.Inf(1)}
	for i, w := range windows(x.course, every) {
		trips := answered(w)
		r := row{at: (time.Duration(i) * Window).Seconds(), pair: pair, latency: math.NaN(), loss: each(len(w)-len(trips), len(w))}
		if len(trips) > 0 {
			r.latency = median(trips) / 2
		}
		if math.Abs(r.latency-last.latency) < change && r.loss == last.loss || math.IsNaN(r.latency) && r.loss == last.loss {
			continue
		}
		rows, last = append(rows, r), r
	}
	return rows
}
