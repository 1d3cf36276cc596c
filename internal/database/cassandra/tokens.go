package cassandra

import (
	"math"
	"math/big"
	"math/rand/v2"
)

// A place is where a member stands on the ring: as the index-th of the members of its
// data centre.
type ringPlace struct{ center, index int }

// assignTokens gives every member of a new cluster so many tokens. sizes are the numbers
// of members of the data centres; the result is by data centre and member.
//
// Each data centre is a ring of its own to the strategy that places replicas, so its
// tokens are spread evenly over the whole range, a little behind those of the data centre
// before, and every member owns the same share of it. Their order is drawn anew for each
// round (with a fixed seed), so that the ranges of a member that leaves go to many:
//
//	center 0   |a   |b   |c   |b   |a   |c   |c  ...
//	center 1   . |d   |e   |d   |e   |d   |e   | ...
func assignTokens(sizes []int, perMember int) [][][]int64 {
	tokens := make([][][]int64, len(sizes))
	random := rand.New(rand.NewPCG(1, 2))
	for c, size := range sizes {
		tokens[c] = make([][]int64, size)
		points := size * perMember
		for at := 0; at < points; at += size {
			for i, m := range random.Perm(size) {
				tokens[c][m] = append(tokens[c][m], ringPoint(at+i, points, c, len(sizes)))
			}
		}
	}
	return tokens
}

// ringPoint is the i-th of n points evenly on the ring of Murmur3Partitioner, all
// 64-bit numbers but the least, moved by part/parts of their distance.
func ringPoint(i, n, part, parts int) int64 {
	// least + (i + part/parts)/n of 2^64, rounded down
	p := big.NewInt(int64(i)*int64(parts) + int64(part))
	p.Lsh(p, 64).Div(p, big.NewInt(int64(n)*int64(parts)))
	p.Add(p, big.NewInt(math.MinInt64))
	return max(p.Int64(), math.MinInt64+1)
}
