package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"skerry/internal/machine/host"
)

// Random plans: afterwards the shares differ by at most one, no slot is lost, and no plan could move fewer slots.
func TestPlan(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + r.IntN(9)
		owned, stays := make([][]int, n), make([]bool, n)
		for i := range stays {
			stays[i] = r.IntN(4) > 0
		}
		stays[r.IntN(n)] = true
		total := r.IntN(200)
		for s := range total {
			i := r.IntN(n)
			if r.IntN(3) > 0 {
				i = 0
			}
			owned[i] = append(owned[i], s)
		}
		moves := planTransfers(owned, stays)
		members := 0
		for _, s := range stays {
			if s {
				members++
			}
		}
		low, high := total/members, (total+members-1)/members
		has, moved := make([][]int, n), 0
		for i := range owned {
			has[i] = slices.Clone(owned[i])
		}
		for _, m := range moves {
			moved += len(m.slots)
			for _, s := range m.slots {
				at := slices.Index(has[m.from], s)
				if at < 0 {
					t.Fatalf("%v, stays %v: %d gives up slot %d, which it does not own", owned, stays, m.from, s)
				}
				has[m.from] = slices.Delete(has[m.from], at, at+1)
				has[m.to] = append(has[m.to], s)
			}
		}
		least, extra := 0, total%members
		var larger []int
		for i := range owned {
			switch {
			case !stays[i]:
				least += len(owned[i])
			case len(owned[i]) > low:
				least += len(owned[i]) - low
				larger = append(larger, i)
			}
			if stays[i] && (len(has[i]) < low || len(has[i]) > high) || !stays[i] && len(has[i]) > 0 {
				t.Fatalf("%v, stays %v: %d ends with %d slots, want %d or %d", owned, stays, i, len(has[i]), low, high)
			}
		}
		// One more may stay with as many masters as there are larger shares.
		least -= min(extra, len(larger))
		if moved != least {
			t.Fatalf("%v, stays %v: %d slots move, %d would do", owned, stays, moved, least)
		}
	}
}

type placed struct {
	host.Host
	site string
}

func (p placed) Site() string { return p.site }

func TestLayout(t *testing.T) {
	for _, test := range []struct {
		sites             string // site of each node
		masters, replicas int
		together          int // replicas at their master's site
		majority          int // maximum number of masters at one site
	}{
		{"abcdef", 3, 1, 0, 1},
		{"aabbcc", 3, 1, 0, 1},
		{"abcabc", 3, 1, 0, 1},
		{"aaabbb", 3, 1, 0, 2},
		{"aaaabb", 3, 1, 1, 2},
		{"aaaaaa", 3, 1, 3, 3},
		{"aabbccddd", 3, 2, 0, 1},
		{"aaabbbccc", 3, 2, 0, 1},
		{"abcd", 4, 0, 0, 1},
	} {
		var nodes []host.Host
		for _, s := range test.sites {
			nodes = append(nodes, placed{site: string(s)})
		}
		master := placeMasters(nodes, test.masters, test.replicas)
		of, at, together := make(map[int]int), make(map[string]int), 0
		for i, m := range master {
			if m == i {
				at[nodes[i].Site()]++
				continue
			}
			of[m]++
			if nodes[i].Site() == nodes[m].Site() {
				together++
			}
		}
		what := fmt.Sprintf("%s with %d masters: %v", test.sites, test.masters, master)
		if together != test.together {
			t.Errorf("%s: %d replicas are at their master's site, want %d", what, together, test.together)
		}
		for i, m := range master {
			if m == i && of[i] != test.replicas {
				t.Errorf("%s: master %d has %d replicas", what, i, of[i])
			}
		}
		for site, n := range at {
			if n > test.majority {
				t.Errorf("%s: %d masters are at %s", what, n, site)
			}
		}
	}
}

// Work that one lane returns reaches another that waits for it.
func TestQueue(t *testing.T) {
	q := newQueue([]int{1, 2, 3})
	first, err := q.popJobs(t.Context(), 10)
	if err != nil || len(first) != 3 {
		t.Fatalf("%v, %v", first, err)
	}
	waiting := make(chan []job)
	go func() {
		jobs, _ := q.popJobs(t.Context(), 10)
		waiting <- jobs
		jobs, _ = q.popJobs(t.Context(), 10)
		waiting <- jobs
	}()
	q.requeue(first[2])
	if again := <-waiting; len(again) != 1 || again[0].slot != 3 {
		t.Errorf("%v was given back, %v came", first[2], again)
	}
	q.complete(2)
	q.complete(1)
	if last := <-waiting; len(last) != 0 {
		t.Errorf("%v when all is done", last)
	}
}
