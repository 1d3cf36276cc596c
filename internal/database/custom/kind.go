package custom

import (
	"context"
	"errors"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/load"
)

// Kind stands in the list of all databases for those that users describe. Clients of all
// of them are opened by it: what they need is in the properties.
type Kind struct {
	*Database // that nobody described
	builtin   Builtin
}

var _ database.Describer = (*Kind)(nil)

// ErrNotDescribed says that a file with the description is missing.
var ErrNotDescribed = errors.New("a database of one's own is described by a file")

// NewKind returns the kind.
func NewKind(builtin Builtin) *Kind {
	return &Kind{builtin: builtin, Database: New(Definition{}, builtin)}
}

// Name implements database.Database.
func (*Kind) Name() string { return database.Exec }

// Check implements database.Database.
func (*Kind) Check(int, database.Options) error { return missingDescription() }

// Find implements database.Database.
func (*Kind) Find(string, string) (database.Installation, error) {
	return database.Installation{}, missingDescription()
}

// Start implements database.Database.
func (*Kind) Start(context.Context, database.Env) (database.Cluster, error) {
	return nil, missingDescription()
}

func missingDescription() error {
	return advice.With(ErrNotDescribed, "write database: {exec: FILE}")
}

// Open implements database.Database.
func (k *Kind) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	return Open(ctx, k.builtin, properties)
}

// Describe implements database.Describer.
func (k *Kind) Describe(path string, text []byte) (database.Database, error) {
	d, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	return New(d, k.builtin), nil
}
