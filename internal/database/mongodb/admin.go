package mongodb

import (
	"context"
	"fmt"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/machine/host"
)

// Admin asks one server, from its own node, what the management of a cluster asks. It
// serves whatever speaks MongoDB's protocol.
type Admin struct {
	client *mongo.Client
	once   sync.Once
	err    error
}

// NewAdmin makes an Admin of the server at addr; it does not connect yet.
func NewAdmin(h host.Host, addr string) (*Admin, error) {
	c, err := newAdminClient(h, addr)
	return &Admin{client: c}, err
}

// Ping returns nil when the server answers.
func (a *Admin) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return command(ctx, a.client, bson.D{{Key: "ping", Value: 1}}, nil)
}

// Count counts the documents of the benchmark's table.
func (a *Admin) Count(ctx context.Context) (int64, error) { return countRows(ctx, a.client) }

// Clear removes the documents of the benchmark's table.
func (a *Admin) Clear(ctx context.Context) error { return clearRows(ctx, a.client) }

// Close ends it; again it does nothing more.
func (a *Admin) Close() error {
	a.once.Do(func() { a.err = disconnect(a.client) })
	return a.err
}

// countRows counts the table's documents: it does not estimate.
func countRows(ctx context.Context, c *mongo.Client) (int64, error) {
	n, err := c.Database(databaseName).Collection(collectionName).CountDocuments(ctx, bson.D{})
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return n, nil
}

// clearRows removes the table's documents. The collection stays, and stays sharded.
func clearRows(ctx context.Context, c *mongo.Client) error {
	if _, err := c.Database(databaseName).Collection(collectionName).DeleteMany(ctx, bson.D{}); err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}
