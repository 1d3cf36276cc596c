package redis

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// peer is one line of CLUSTER NODES: a node as another one sees it,
// https://redis.io/docs/latest/commands/cluster-nodes/.
type peer struct {
	id     string
	addr   string // host:port
	flags  []string
	master string // the id of its master, "" for a master
	slots  []slotRange
	open   int // slots that are on the move
}

type slotRange struct{ from, to int } // both inclusive

func (p peer) is(flag string) bool {
	for _, f := range p.flags {
		if f == flag {
			return true
		}
	}
	return false
}

// owned is how many slots it serves.
func (p peer) owned() (n int) {
	for _, r := range p.slots {
		n += r.to - r.from + 1
	}
	return n
}

// state is Redis' own words for the node: "master", "slave", "master,fail".
func (p peer) state() string {
	var words []string
	for _, f := range p.flags {
		if f != "myself" {
			words = append(words, f)
		}
	}
	return strings.Join(words, ",")
}

// parseNodes reads the reply to CLUSTER NODES, a line a node:
//
//	id host:port@bus[,name] flags master ping pong epoch link [slot|from-to|[slot->-id]] ...
func parseNodes(text string) ([]peer, error) {
	var peers []peer
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 8 {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q has %d fields, want 8 or more", line, len(f))
		}
		p := peer{id: f[0], flags: strings.Split(f[2], ",")}
		p.addr, _, _ = strings.Cut(f[1], "@")
		if _, _, err := net.SplitHostPort(p.addr); err != nil {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
		}
		if f[3] != "-" {
			p.master = f[3]
		}
		for _, s := range f[8:] {
			if strings.HasPrefix(s, "[") {
				p.open++
				continue
			}
			r, err := parseSlots(s)
			if err != nil {
				return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
			}
			p.slots = append(p.slots, r)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

func parseSlots(s string) (slotRange, error) {
	from, to, ranged := strings.Cut(s, "-")
	if !ranged {
		to = from
	}
	a, err := strconv.Atoi(from)
	if err != nil {
		return slotRange{}, err
	}
	b, err := strconv.Atoi(to)
	if err != nil {
		return slotRange{}, err
	}
	if a < 0 || b >= slots || a > b {
		return slotRange{}, fmt.Errorf("slots %s are not within 0-%d", s, slots-1)
	}
	return slotRange{a, b}, nil
}
