package redis

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// peer is a line of CLUSTER NODES, https://redis.io/docs/latest/commands/cluster-nodes/.
type peer struct {
	id     string
	addr   string // host:port
	flags  []string
	master string // the id of its master, "" for a master
	epoch  int64  // of its claim on slots: the greatest one wins
	link   bool   // whether the viewing node is connected to it
	slots  []slotRange
	// migrating and importing map moving slots to the id of the other node, in a node's view of itself.
	migrating, importing map[int]string
}

type slotRange struct{ from, to int } // both inclusive

func (p peer) hasFlag(flag string) bool {
	for _, f := range p.flags {
		if f == flag {
			return true
		}
	}
	return false
}

func (p peer) countSlots() (n int) {
	for _, r := range p.slots {
		n += r.to - r.from + 1
	}
	return n
}

func (p peer) countMoves() int { return len(p.migrating) + len(p.importing) }

// stateText returns Redis' own words for the node, such as "master", "slave" or "master,fail".
func (p peer) stateText() string {
	var words []string
	for _, f := range p.flags {
		if f != "myself" {
			words = append(words, f)
		}
	}
	return strings.Join(words, ",")
}

// parseNodes parses the reply to CLUSTER NODES, with one line per node:
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
		p.link = f[7] == "connected"
		var err error
		if p.epoch, err = strconv.ParseInt(f[6], 10, 64); err != nil {
			return nil, fmt.Errorf("reading CLUSTER NODES: %q: the epoch: %w", line, err)
		}
		if f[3] != "-" {
			p.master = f[3]
		}
		for _, s := range f[8:] {
			if strings.HasPrefix(s, "[") {
				if err := p.parseMove(s); err != nil {
					return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
				}
				continue
			}
			r, err := parseSlotRange(s)
			if err != nil {
				return nil, fmt.Errorf("reading CLUSTER NODES: %q: %w", line, err)
			}
			p.slots = append(p.slots, r)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// parseMove parses "[5461->-id]", a slot that moves to a node, or "[5461-<-id]", one from it.
func (p *peer) parseMove(s string) error {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(s, "["), "]")
	for _, arrow := range []string{"->-", "-<-"} {
		slot, id, found := strings.Cut(inner, arrow)
		if !ok || !found {
			continue
		}
		r, err := parseSlotRange(slot)
		if err != nil {
			return err
		}
		if arrow == "->-" {
			p.migrating = withSlot(p.migrating, r.from, id)
		} else {
			p.importing = withSlot(p.importing, r.from, id)
		}
		return nil
	}
	return fmt.Errorf("invalid moving slot %q", s)
}

func withSlot(m map[int]string, slot int, id string) map[int]string {
	if m == nil {
		m = make(map[int]string)
	}
	m[slot] = id
	return m
}

func parseSlotRange(s string) (slotRange, error) {
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
