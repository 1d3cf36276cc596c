package mongodb

import (
	"errors"
	"fmt"
	"strings"
	"time"

	drv "go.mongodb.org/mongo-driver/v2/mongo/options"

	"skerry/internal/database"
)

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropURL     = "mongodb.url"     // mongodb://host:port,.../ycsb?replicaSet=...&w=...; YCSB's own property
	PropRetry   = "mongodb.retry"   // have the driver try operations again that it knows to be safe; default false
	PropTimeout = "mongodb.timeout" // milliseconds for an operation that has no other bound; default 10000
)

// Properties lists the client's properties.
func Properties() []string { return []string{PropURL, PropRetry, PropTimeout} }

const defaultTimeout = 10 * time.Second

// settings are the client's properties, understood.
type settings struct {
	url, database string
	retry         bool
	timeout       time.Duration
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "mongodb.", p, Properties()...)
	s := settings{
		url: r.Text(PropURL, ""), database: databaseName,
		retry: r.Bool(PropRetry, false), timeout: r.Milliseconds(PropTimeout, defaultTimeout),
	}
	if err := r.Err(); err != nil {
		return s, err
	}
	if s.url == "" {
		return s, fmt.Errorf("%w: %s is missing (mongodb://host:port,.../ycsb)", ErrProperty, PropURL)
	}
	o := drv.Client().ApplyURI(s.url)
	if err := o.Validate(); err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrProperty, PropURL, err)
	}
	if !o.WriteConcern.Acknowledged() {
		return s, fmt.Errorf("%w: %s: w=0: writes that no server acknowledges cannot be counted: "+
			"set w=1, a larger number or majority", ErrProperty, PropURL)
	}
	_, rest, _ := strings.Cut(s.url, "://")
	if _, path, ok := strings.Cut(rest, "/"); ok {
		if name, _, _ := strings.Cut(path, "?"); name != "" {
			s.database = name
		}
	}
	return s, nil
}
