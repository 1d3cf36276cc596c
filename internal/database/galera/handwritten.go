package galera

import (
	"context"

	"skerry/internal/database"
)

var _ database.Handwritten = (*Galera)(nil)

// Handwritten implements database.Handwritten.
func (g *Galera) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	return g.driver.Handwritten(ctx, properties)
}
