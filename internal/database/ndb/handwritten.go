package ndb

import (
	"context"

	"skerry/internal/database"
)

var _ database.Handwritten = (*NDB)(nil)

// Handwritten implements database.Handwritten.
func (n *NDB) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	return n.driver.Handwritten(ctx, properties)
}
