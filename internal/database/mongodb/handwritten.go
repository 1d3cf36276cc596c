package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
)

var _ database.Handwritten = (*MongoDB)(nil)

// Handwritten is database.Handwritten for the databases that speak MongoDB's protocol: a
// FindOne with the official driver, decoded into a map.
func (*Pool) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	client, err := mongo.Connect(drv.Client().ApplyURI(properties[PropURL]))
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to mongodb: %w", err)
	}
	table := client.Database(databaseName).Collection(collectionName)
	read := func(ctx context.Context, key string) error {
		var document bson.M
		return table.FindOne(ctx, byKey(key)).Decode(&document)
	}
	return read, func() error { return client.Disconnect(context.WithoutCancel(ctx)) }, nil
}
