package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	drv "go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"skerry/internal/database"
	"skerry/internal/load"
)

type client struct {
	settings
	*driverClient
	release func() error
	names   database.FieldNames
}

var (
	_ load.Client  = (*client)(nil)
	_ load.Retrier = (*client)(nil)
	_ load.Counter = (*client)(nil)
)

// Retries implements load.Retrier with the worker's share: the driver counts retries of all workers together.
func (c *client) Retries() int64 {
	if !c.retry {
		return 0
	}
	return max(0, c.commands.Load()-c.operations.Load()) / max(1, c.workers.Load())
}

func (c *client) beginOperation(ctx context.Context, name string) (*mongo.Collection, context.Context, context.CancelFunc, error) {
	if name == "" {
		name = collectionName
	}
	cancel := func() {}
	if err := ctx.Err(); err != nil {
		return nil, ctx, cancel, load.Failed(classNoServer, "", err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
	}
	if c.retry {
		c.operations.Add(1)
	}
	return c.client.Database(c.database).Collection(name), ctx, cancel, nil
}

func keyFilter(key string) bson.D { return bson.D{{Key: "_id", Value: key}} }

// fieldProjection returns the projection to the given fields, nil for all.
func fieldProjection(fields []string) bson.D {
	if len(fields) == 0 {
		return nil
	}
	p := make(bson.D, len(fields))
	for i, f := range fields {
		p[i] = bson.E{Key: f, Value: 1}
	}
	return p
}

func (c *client) Read(ctx context.Context, table, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return dst, err
	}
	defer cancel()
	o := drv.FindOne()
	if p := fieldProjection(fields); p != nil {
		o.SetProjection(p)
	}
	raw, err := coll.FindOne(ctx, keyFilter(key), o).Raw()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return dst, load.ErrNotFound
	case err != nil:
		return dst, classify(err)
	}
	return c.decodeFields(dst, raw)
}

func (c *client) decodeFields(dst []load.Field, raw bson.Raw) ([]load.Field, error) {
	elements, err := raw.Elements()
	if err != nil {
		return dst, load.Failed("document", "", fmt.Errorf("reading a document: %w", err))
	}
	for i, e := range elements {
		v := e.Value()
		switch v.Type {
		case bson.TypeBinary:
			_, data := v.Binary()
			dst = append(dst, load.Field{Name: c.fieldName(i, e), Value: data})
		case bson.TypeString:
			if name := c.fieldName(i, e); name != "_id" {
				dst = append(dst, load.Field{Name: name, Value: []byte(v.StringValue())})
			}
		}
	}
	return dst, nil
}

// fieldName returns the name of an element: the bytes behind its type, up to a zero.
func (c *client) fieldName(i int, e bson.RawElement) string {
	text, _, _ := bytes.Cut(e[1:], []byte{0})
	return c.names.String(i, text)
}

func (c *client) Scan(ctx context.Context, table, start string, count int, fields []string, visit func(string, []load.Field)) (int, error) {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return 0, err
	}
	defer cancel()
	o := drv.Find().SetSort(bson.D{{Key: "_id", Value: 1}}).SetLimit(int64(count)).SetBatchSize(int32(min(count, 1<<20)))
	if p := fieldProjection(fields); p != nil {
		o.SetProjection(p)
	}
	cursor, err := coll.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: start}}}}, o)
	if err != nil {
		return 0, classify(err)
	}
	defer cursor.Close(ctx)
	seen := 0
	var record []load.Field
	for cursor.Next(ctx) {
		seen++
		if visit == nil {
			continue
		}
		if record, err = c.decodeFields(record[:0], cursor.Current); err != nil {
			return seen, err
		}
		key, _ := cursor.Current.Lookup("_id").StringValueOK()
		visit(key, record)
	}
	if err := cursor.Err(); err != nil {
		return seen, classify(err)
	}
	return seen, nil
}

func encodeFields(fields []load.Field, more ...bson.E) bson.D {
	d := make(bson.D, 0, len(fields)+len(more))
	d = append(d, more...)
	for _, f := range fields {
		d = append(d, bson.E{Key: f.Name, Value: bson.Binary{Data: f.Value}})
	}
	return d
}

// Insert implements load.Client. It replaces an existing record, so that an insert can be retried.
func (c *client) Insert(ctx context.Context, table, key string, fields []load.Field) error {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	document := encodeFields(fields, bson.E{Key: "_id", Value: key})
	_, err = coll.InsertOne(ctx, document)
	if mongo.IsDuplicateKeyError(err) {
		if c.retry {
			c.operations.Add(1)
		}
		_, err = coll.ReplaceOne(ctx, keyFilter(key), document, drv.Replace().SetUpsert(true))
	}
	return classify(err)
}

func (c *client) Update(ctx context.Context, table, key string, fields []load.Field) error {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	done, err := coll.UpdateOne(ctx, keyFilter(key), bson.D{{Key: "$set", Value: encodeFields(fields)}})
	if err := classify(err); err != nil {
		return err
	}
	if done.MatchedCount == 0 {
		return load.ErrNotFound
	}
	return nil
}

func (c *client) Delete(ctx context.Context, table, key string) error {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	done, err := coll.DeleteOne(ctx, keyFilter(key))
	if err := classify(err); err != nil {
		return err
	}
	if done.DeletedCount == 0 {
		return load.ErrNotFound
	}
	return nil
}

func (c *client) DropTable(ctx context.Context, table string) error {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return err
	}
	defer cancel()
	return classify(coll.Drop(ctx))
}

func (c *client) Count(ctx context.Context, table string) (int64, error) {
	coll, ctx, cancel, err := c.beginOperation(ctx, table)
	if err != nil {
		return 0, err
	}
	defer cancel()
	n, err := coll.CountDocuments(ctx, bson.D{})
	if err != nil {
		return 0, classify(err)
	}
	return n, nil
}

func (c *client) Close() error {
	if c.release == nil {
		return nil
	}
	release := c.release
	c.release = nil
	c.workers.Add(-1)
	return release()
}

const poolSize = 2048

type driverClient struct {
	client  *mongo.Client
	workers atomic.Int64
	// commands counts the commands sent for operations, if the driver retries.
	commands   atomic.Int64
	operations atomic.Int64 // operations
}

var dataCommands = map[string]bool{"find": true, "update": true, "insert": true, "delete": true}

func (p *Pool) open(ctx context.Context, s settings) (*client, error) {
	sh, release, err := p.drivers.Acquire(ctx, s, database.ClientSource[*driverClient]{
		Open:  func(context.Context) (*driverClient, error) { return connect(s) },
		Close: func(sh *driverClient) error { return disconnect(sh.client) },
	})
	if err != nil {
		return nil, err
	}
	sh.workers.Add(1)
	c := &client{settings: s, driverClient: sh, release: release}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// The ping detects a wrong address before the first operation.
	if err := sh.client.Ping(ctx, nil); err != nil {
		_ = c.Close() // the error that counts is that of the ping
		return nil, fmt.Errorf("opening a client of mongodb: %w", classify(err))
	}
	return c, nil
}

// connect makes a client with the settings and further options, which win.
func connect(s settings, more ...*drv.ClientOptions) (*driverClient, error) {
	login, err := database.ReadLogin(s.access, "", "")
	if err != nil {
		return nil, fmt.Errorf("creating a client of mongodb: %w", err)
	}
	sh := &driverClient{}
	o := drv.Client().SetMaxPoolSize(poolSize).SetServerSelectionTimeout(s.timeout).SetConnectTimeout(s.timeout)
	// These options precede ApplyURI, so that the URL overrides them.
	o.SetRetryReads(s.retry).SetRetryWrites(s.retry).SetAppName("skerry")
	o.ApplyURI(s.url)
	if login.TLS != nil {
		o.SetTLSConfig(login.TLS)
	}
	if login.User != "" {
		uri, err := connstring.Parse(s.url)
		if err != nil {
			return nil, fmt.Errorf("creating a client of mongodb: %w", err)
		}
		o.SetAuth(drv.Credential{
			Username: login.User, Password: login.Password.Reveal(), PasswordSet: login.Password.Reveal() != "", AuthSource: uri.AuthSource,
		})
	}
	if s.retry {
		o.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
			if dataCommands[e.CommandName] {
				sh.commands.Add(1)
			}
		}})
	}
	if sh.client, err = mongo.Connect(append([]*drv.ClientOptions{o}, more...)...); err != nil {
		return nil, fmt.Errorf("creating a client of mongodb: %w", err)
	}
	return sh, nil
}

func disconnect(c *mongo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	if err := c.Disconnect(ctx); err != nil {
		return fmt.Errorf("closing a client of mongodb: %w", err)
	}
	return nil
}
