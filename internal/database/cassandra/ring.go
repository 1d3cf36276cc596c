package cassandra

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/load"
)

type ringPlace struct{ center, index int }

// assignTokens returns the tokens of a new cluster's members by data centre and member. sizes are the numbers of
// members of the data centres.
//
// Each data centre is a ring of its own for the placement of replicas, so its tokens are spread evenly, shifted a
// little against those of the data centre before. Each round has a new random order (with a fixed seed), so that many
// members take over the ranges of one that leaves:
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

// ringPoint returns the i-th of n even points on the Murmur3Partitioner ring, moved by part/parts of their distance.
func ringPoint(i, n, part, parts int) int64 {
	// least + (i + part/parts)/n of 2^64, rounded down
	p := big.NewInt(int64(i)*int64(parts) + int64(part))
	p.Lsh(p, 64).Div(p, big.NewInt(int64(n)*int64(parts)))
	p.Add(p, big.NewInt(math.MinInt64))
	return max(p.Int64(), math.MinInt64+1)
}

// tokenOf returns a key's token: the first half of MurmurHash3_x64_128 with seed 0, in Cassandra's variant,
// which reads the bytes of the tail as signed numbers.
func tokenOf(key string) int64 {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	var h1, h2 uint64
	data := []byte(key)
	for ; len(data) >= 16; data = data[16:] {
		h1 ^= mixBlock(binary.LittleEndian.Uint64(data), c1, c2, 31)
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mixBlock(binary.LittleEndian.Uint64(data[8:]), c2, c1, 33)
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var k1, k2 uint64
	for i, b := range data {
		signed := uint64(int64(int8(b)))
		if i < 8 {
			k1 ^= signed << (8 * i)
		} else {
			k2 ^= signed << (8 * (i - 8))
		}
	}
	h2 ^= mixBlock(k2, c2, c1, 33)
	h1 ^= mixBlock(k1, c1, c2, 31)
	h1 ^= uint64(len(key))
	h2 ^= uint64(len(key))
	h1 += h2
	h2 += h1
	h1 = finalMix(h1) + finalMix(h2)
	if int64(h1) == math.MinInt64 { // no member's token
		return math.MaxInt64
	}
	return int64(h1)
}

func mixBlock(k, by, then uint64, rotate int) uint64 { return bits.RotateLeft64(k*by, rotate) * then }

func finalMix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// nodeLocal makes a member answer a read from its own copy, https://issues.apache.org/jira/browse/CASSANDRA-7168.
// Members must be started with cassandra.enable_nodelocal_queries.
const nodeLocal = gocql.Consistency(11)

// locator finds the keys that a member holds by design.
type locator struct {
	ring        []tokenRange
	centers     map[string]string // of each owner; nil where they are not told apart
	replication int               // of the cluster, or of each data centre
	member      string            // its address
}

// holds reports whether the member is one of a key's replicas: the next owners on the ring, in the cluster
// (SimpleStrategy) or in each data centre (NetworkTopologyStrategy with one rack).
func (l *locator) holds(key string) bool {
	first, _ := slices.BinarySearchFunc(l.ring, tokenOf(key), func(s tokenRange, token int64) int { return cmp.Compare(s.to, token) })
	center, found := l.centers[l.member], 0
	var seen []string
	for i := range l.ring {
		owner := l.ring[(first+i)%len(l.ring)].owner
		if l.centers[owner] != center || slices.Contains(seen, owner) {
			continue
		}
		if owner == l.member {
			return true
		}
		seen = append(seen, owner)
		if found++; found == l.replication {
			return false
		}
	}
	return false
}

func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	members := c.All()
	i := slices.IndexFunc(members, func(m *member) bool { return m.host.Name() == node })
	if i < 0 || !members[i].Running() {
		return nil, fmt.Errorf("opening a client of cassandra on %s: %w", node, database.ErrNotMember)
	}
	m := members[i]
	session, err := c.openSession(m, defaultKeyspace)
	if err != nil {
		return nil, err
	}
	client, err := c.newMemberClient(ctx, m, session)
	if err != nil {
		session.Close()
		return nil, fmt.Errorf("opening a client of cassandra on %s: %w", node, err)
	}
	return client, nil
}

func (c *cluster) newMemberClient(ctx context.Context, m *member, session *gocql.Session) (*client, error) {
	spans, err := m.querySpans(ctx, session)
	if err != nil {
		return nil, err
	}
	l := &locator{ring: spans, replication: c.options.replication, member: m.host.Addr()}
	if c.options.strategy == strategyNetwork {
		l.centers = make(map[string]string)
		for _, o := range c.All() {
			l.centers[o.host.Addr()] = o.config.center
		}
	}
	st := &store{session: session, settings: settings{keyspace: defaultKeyspace, table: defaultTable, timeout: truncateTimeout}}
	if err := st.readColumns(ctx); err != nil {
		return nil, err
	}
	one := newClient(st, st.close)
	one.level, one.locator = nodeLocal, l
	return one, nil
}
