package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
)

const (
	// databaseName and its collection are those of YCSB's binding.
	databaseName   = "ycsb"
	collectionName = "usertable"
)

type shardState struct {
	ID    string `bson:"_id"`
	Host  string `bson:"host"`
	State int    `bson:"state"` // 1: aware of being a shard
}

func addShard(ctx context.Context, c *mongo.Client, set string, hosts []string) error {
	return command(ctx, c, bson.D{
		{Key: "addShard", Value: set + "/" + strings.Join(hosts, ",")}, {Key: "name", Value: set},
	}, nil)
}

func listShards(ctx context.Context, c *mongo.Client) ([]shardState, error) {
	var answer struct {
		Shards []shardState `bson:"shards"`
	}
	err := command(ctx, c, bson.D{{Key: "listShards", Value: 1}}, &answer)
	return answer.Shards, err
}

// shardCollection spreads the table over the shards by the hash of its key.
func shardCollection(ctx context.Context, c *mongo.Client) error {
	if err := command(ctx, c, bson.D{{Key: "enableSharding", Value: databaseName}}, nil); err != nil {
		return err
	}
	return command(ctx, c, bson.D{
		{Key: "shardCollection", Value: databaseName + "." + collectionName},
		{Key: "key", Value: bson.D{{Key: "_id", Value: "hashed"}}},
	}, nil)
}

type removal struct {
	State     string   `bson:"state"` // started, ongoing, completed
	ToMove    []string `bson:"dbsToMove"`
	Remaining struct {
		Chunks int64 `bson:"chunks"`
		DBs    int64 `bson:"dbs"`
	} `bson:"remaining"`
}

// States of a removal. The first answer is "started", without the number of remaining chunks.
const (
	ongoing   = "ongoing"
	completed = "completed"
)

// removeShard starts to drain a shard or returns the progress. An unknown shard counts as completed.
func removeShard(ctx context.Context, c *mongo.Client, shard string) (r removal, err error) {
	err = command(ctx, c, bson.D{{Key: "removeShard", Value: shard}}, &r)
	var e mongo.CommandError
	if errors.As(err, &e) && e.Code == codeShardNotFound {
		return removal{State: completed}, nil
	}
	return r, err
}

const codeShardNotFound = 70

// movePrimary moves a database's unsharded collections to another shard.
func movePrimary(ctx context.Context, c *mongo.Client, name, to string) error {
	return command(ctx, c, bson.D{{Key: "movePrimary", Value: name}, {Key: "to", Value: to}}, nil)
}

// countRowsByShard counts the documents on each shard, including orphans of migrations.
func countRowsByShard(ctx context.Context, c *mongo.Client) (map[string]int64, error) {
	cursor, err := c.Database(databaseName).Collection(collectionName).Aggregate(ctx,
		mongo.Pipeline{{{Key: "$collStats", Value: bson.D{{Key: "count", Value: bson.D{}}}}}})
	if err != nil {
		return nil, fmt.Errorf("collStats: %w", err)
	}
	var list []struct {
		Shard string `bson:"shard"`
		Count int64  `bson:"count"`
	}
	if err := cursor.All(ctx, &list); err != nil {
		return nil, fmt.Errorf("collStats: %w", err)
	}
	rows := make(map[string]int64, len(list))
	for _, s := range list {
		rows[s.Shard] += s.Count
	}
	return rows, nil
}

// codeCommandNotFound is the error of a server that is older than a command.
const codeCommandNotFound = 59

// checkBalanced returns nil if the balancer has nothing to move in the table. It needs a mongos.
func checkBalanced(ctx context.Context, c *mongo.Client) error {
	var answer struct {
		Compliant bool   `bson:"balancerCompliant"`
		First     string `bson:"firstComplianceViolation"`
	}
	err := command(ctx, c, bson.D{{Key: "balancerCollectionStatus", Value: databaseName + "." + collectionName}}, &answer)
	var e mongo.CommandError
	switch {
	case errors.As(err, &e) && e.Code == codeCommandNotFound:
		return checkChunks(ctx, c)
	case err != nil:
		return err
	case !answer.Compliant:
		return fmt.Errorf("%w: the balancer is still moving chunks (%s)", database.ErrNotReady, answer.First)
	}
	return nil
}

// checkChunks is checkBalanced before MongoDB 4.4, by the numbers of chunks on the config servers.
func checkChunks(ctx context.Context, c *mongo.Client) error {
	shards, err := listShards(ctx, c)
	if err != nil {
		return err
	}
	cursor, err := c.Database("config").Collection("chunks").Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "ns", Value: databaseName + "." + collectionName}}}},
		{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$shard"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
	})
	if err != nil {
		return fmt.Errorf("counting chunks: %w", err)
	}
	var counted []struct {
		Shard string `bson:"_id"`
		N     int    `bson:"n"`
	}
	if err := cursor.All(ctx, &counted); err != nil {
		return fmt.Errorf("counting chunks: %w", err)
	}
	chunks := make([]int, len(shards)) // the aggregation skips shards without chunks
	for i, s := range shards {
		for _, n := range counted {
			if n.Shard == s.ID {
				chunks[i] = n.N
			}
		}
	}
	if !isEven(chunks) {
		return fmt.Errorf("%w: the balancer is still moving chunks (chunks by shard: %v)", database.ErrNotReady, chunks)
	}
	return nil
}

// isEven reports whether no number of chunks is above the rounded mean, or none below: MongoDB 4.2's rule.
func isEven(chunks []int) bool {
	total := 0
	for _, n := range chunks {
		total += n
	}
	if total == 0 {
		return true
	}
	ideal := int(math.Round(float64(total) / float64(len(chunks))))
	return slices.Max(chunks) <= ideal || slices.Min(chunks) >= ideal
}
