package mongodb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
)

// codeCommandNotFound is a server's that is older than a command.
const codeCommandNotFound = 59

// checkBalanced returns nil when the balancer has nothing to move in the table; it is sent to a
// mongos.
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
		return fmt.Errorf("%w: the balancer is not done (%s)", database.ErrNotReady, answer.First)
	}
	return nil
}

// checkChunks is balanced before MongoDB 4.4, whose balancer is not asked but goes by the
// number of chunks, which the config servers know.
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
	chunks := make([]int, len(shards)) // a shard that has none is not among those counted
	for i, s := range shards {
		for _, n := range counted {
			if n.Shard == s.ID {
				chunks[i] = n.N
			}
		}
	}
	if !isEven(chunks) {
		return fmt.Errorf("%w: the balancer is not done (chunks by shard: %v)", database.ErrNotReady, chunks)
	}
	return nil
}

// isEven tells whether MongoDB 4.2's balancer leaves so many chunks a shard as they are: none
// has more than the mean, rounded, or none has less.
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
