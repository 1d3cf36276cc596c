package mongodb

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
	"skerry/internal/load"
)

// OpenMember implements database.Replicated: a connection to each server on the node that holds records. In a
// sharded cluster a server that is asked alone also shows what has moved to another shard and is not deleted yet:
// who has a record is told by the chunks.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	fail := func(err error) (load.Client, error) {
		return nil, fmt.Errorf("reading the copy of %s: %w", node, err)
	}
	servers := slices.DeleteFunc(c.AllOn(node), func(s *server) bool { return s.role != roleMember && s.role != roleShard })
	if len(servers) == 0 {
		return fail(database.ErrNotMember)
	}
	copies := make(map[string]*client)
	for _, s := range servers {
		direct, err := newAdminClient(s.host, s.local)
		if err != nil {
			return fail(errors.Join(err, closeAll(copies)))
		}
		copies[s.set] = &client{
			settings:     settings{database: databaseName, timeout: defaultTimeout},
			driverClient: &driverClient{client: direct}, release: func() error { return disconnect(direct) },
		}
	}
	if !c.options.sharded {
		return copies[setName], nil
	}
	router, err := c.findRouter()
	if err != nil {
		return fail(errors.Join(err, closeAll(copies)))
	}
	chunks, err := readChunks(ctx, router.admin)
	if err != nil {
		return fail(errors.Join(err, closeAll(copies)))
	}
	return &shardCopies{copies: copies, chunks: chunks}, nil
}

func closeAll(clients map[string]*client) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// chunk is the part of the table below a hash, from the end of the chunk before.
type chunk struct {
	end   int64
	shard string
}

const noEnd = math.MaxInt64

// readChunks asks a mongos for the table's chunks, in order. They name their table, since MongoDB 5.0 by its UUID.
func readChunks(ctx context.Context, c *mongo.Client) ([]chunk, error) {
	const name = databaseName + "." + collectionName
	config := c.Database("config")
	var table struct {
		UUID bson.Binary `bson:"uuid"`
	}
	if err := config.Collection("collections").FindOne(ctx, bson.D{{Key: "_id", Value: name}}).Decode(&table); err != nil {
		return nil, fmt.Errorf("querying the chunks of %s: %w", name, err)
	}
	cursor, err := config.Collection("chunks").Find(ctx, bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "ns", Value: name}}, bson.D{{Key: "uuid", Value: table.UUID}},
	}}})
	if err != nil {
		return nil, fmt.Errorf("querying the chunks of %s: %w", name, err)
	}
	var found []struct {
		Max   bson.Raw `bson:"max"`
		Shard string   `bson:"shard"`
	}
	if err := cursor.All(ctx, &found); err != nil {
		return nil, fmt.Errorf("querying the chunks of %s: %w", name, err)
	}
	var chunks []chunk
	for _, f := range found {
		end, ok := f.Max.Lookup("_id").AsInt64OK()
		if !ok {
			end = noEnd
		}
		chunks = append(chunks, chunk{end: end, shard: f.Shard})
	}
	slices.SortFunc(chunks, func(a, b chunk) int { return cmp.Compare(a.end, b.end) })
	return chunks, nil
}

// hashOf returns the hash of a key that shards the table, MongoDB's hash of a hashed index: the first half of the
// MD5 of a seed of 0, the kind of value, and the value as BSON has it.
func hashOf(key string) int64 {
	const seed, text = 0, 15 // how strings sort among kinds of values
	b := binary.LittleEndian.AppendUint32(nil, seed)
	b = binary.LittleEndian.AppendUint32(b, text)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(key)+1))
	sum := md5.Sum(append(append(b, key...), 0))
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

// shardCopies reads what the servers of one node hold, by shard.
type shardCopies struct {
	copies map[string]*client
	chunks []chunk
}

var _ load.Client = (*shardCopies)(nil)

// errReadOnly means that a member's own copy cannot be written.
var errReadOnly = fmt.Errorf("%w: a member's own copy is read only", load.ErrUnsupported)

func (s *shardCopies) findShard(key string) string {
	hash := hashOf(key)
	for _, c := range s.chunks {
		if hash < c.end || c.end == noEnd {
			return c.shard
		}
	}
	return ""
}

func (s *shardCopies) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	c := s.copies[s.findShard(key)]
	if c == nil {
		return dst, load.ErrNotHeld
	}
	return c.Read(ctx, table, key, fields, dst)
}

// Scan implements load.Client. It walks through all keys each time: how many of them are another shard's is not known.
func (s *shardCopies) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	var keys []string
	for shard, c := range s.copies {
		if _, err := c.Scan(ctx, table, start, math.MaxInt32, nil, func(key string, _ []load.Field) {
			if s.findShard(key) == shard {
				keys = append(keys, key)
			}
		}); err != nil {
			return 0, err
		}
	}
	slices.Sort(keys)
	keys = keys[:min(count, len(keys))]
	for i, key := range keys {
		record, err := s.Read(ctx, table, key, fields, nil)
		if err != nil {
			return i, err
		}
		if visit != nil {
			visit(key, record)
		}
	}
	return len(keys), nil
}

func (*shardCopies) Update(context.Context, string, string, []load.Field) error { return errReadOnly }

func (*shardCopies) Insert(context.Context, string, string, []load.Field) error { return errReadOnly }

func (*shardCopies) Delete(context.Context, string, string) error { return errReadOnly }

func (s *shardCopies) Close() error { return closeAll(s.copies) }
