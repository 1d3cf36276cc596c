package redis

import (
	"skerry/internal/machine/host"
)

// placeMasters says which nodes are masters and whose replicas the others are:
//
//	site    a        b        c
//	nodes   n1 n2    n3 n4    n5 n6
//	        M1 R2    M2 R3    M3 R1      3 masters, a replica each
//
// Masters are dealt over the sites in turn, so that losing a site loses as few of them
// as possible. A replica is at its master's site only where no assignment avoids it.
// The result is, for each node, the index of its master's node; a master's is its own.
func placeMasters(nodes []host.Host, masters, replicas int) []int {
	master := make([]int, len(nodes))
	for i := range master {
		master[i] = -1
	}
	chosen := pickBySite(nodes, masters)
	for _, i := range chosen {
		master[i] = i
	}
	var free []int
	for i := range nodes {
		if master[i] < 0 {
			free = append(free, i)
		}
	}
	// A seat is one replica of one master: the first of each, then the second of each.
	seats := make([]int, 0, masters*replicas)
	for range replicas {
		seats = append(seats, chosen...)
	}
	for seat, node := range matchSeats(len(seats), len(free), func(seat, node int) bool {
		return nodes[seats[seat]].Site() != nodes[free[node]].Site()
	}) {
		master[free[node]] = seats[seat]
	}
	return master
}

// pickBySite picks so many nodes, one of each site in turn, in the nodes' order.
func pickBySite(nodes []host.Host, count int) []int {
	var sites []string
	at := make(map[string][]int)
	for i, h := range nodes {
		if at[h.Site()] == nil {
			sites = append(sites, h.Site())
		}
		at[h.Site()] = append(at[h.Site()], i)
	}
	picked := make([]int, 0, count)
	for round := 0; len(picked) < count; round++ {
		for _, s := range sites {
			if len(picked) < count && round < len(at[s]) {
				picked = append(picked, at[s][round])
			}
		}
	}
	return picked
}

// matchSeats gives every seat a node of its own, as many of them as possible one that suits
// it: a maximum matching by augmenting paths (Kuhn), then the rest in order. There are
// as many nodes as seats.
func matchSeats(seats, nodes int, suits func(seat, node int) bool) []int {
	taken := make([]int, nodes) // the seat that a node has, -1 for none
	for n := range taken {
		taken[n] = -1
	}
	var seated func(seat int, tried []bool) bool
	seated = func(seat int, tried []bool) bool {
		for k := range nodes {
			n := (seat + 1 + k) % nodes // neighbours, in a circle
			if tried[n] || !suits(seat, n) {
				continue
			}
			tried[n] = true
			if taken[n] < 0 || seated(taken[n], tried) {
				taken[n] = seat
				return true
			}
		}
		return false
	}
	result := make([]int, seats)
	for s := range seats {
		result[s] = -1
		seated(s, make([]bool, nodes))
	}
	for n, s := range taken {
		if s >= 0 {
			result[s] = n
		}
	}
	next := 0
	for s := range result {
		if result[s] >= 0 {
			continue
		}
		for taken[next] >= 0 {
			next++
		}
		taken[next], result[s] = s, next
	}
	return result
}
