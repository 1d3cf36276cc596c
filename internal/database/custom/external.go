package custom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"skerry/internal/database"
	"skerry/internal/load"
)

var (
	_ database.External     = (*Database)(nil)
	_ database.TableManager = (*Database)(nil)
)

// ServerProperties implements database.External. In the templates of the client's properties, the servers are the members.
func (d *Database) ServerProperties(servers []string, table string) map[string]string {
	data := templateData{Options: d.def.Options, File: d.def.dir}
	for i, s := range servers {
		host, port, _ := net.SplitHostPort(s) // the servers were checked
		data.Members = append(data.Members, Peer{Node: s, Addr: host, Index: i, port: port})
	}
	data.Nodes = data.Members
	if len(servers) > 0 {
		data.Peer, data.First, data.Others = data.Members[0], data.Members[0], data.Members[1:]
	}
	if len(data.Others) > 0 {
		data.Other = data.Others[0]
	}
	properties := d.def.clientProperties(data)
	switch p, ok := d.client(d.def.Client.Protocol); {
	case ok: // the client's own properties name the servers and the table
		maps.Copy(properties, p.ServerProperties(servers, table))
	case d.def.Client.Protocol == HTTPKV:
		properties[PropServers] = strings.Join(servers, ",")
	}
	return properties
}

// client returns the built-in database whose clients speak the protocol.
func (d *Database) client(protocol string) (database.External, bool) {
	p, ok := d.builtin.Protocol(protocol)
	if !ok {
		return nil, false
	}
	e, ok := p.(database.External)
	return e, ok
}

// ServerVersion implements database.External for the protocols of built-in databases.
func (d *Database) ServerVersion(ctx context.Context, server string, properties map[string]string) (string, error) {
	if p, ok := d.client(properties[PropProtocol]); ok {
		return p.ServerVersion(ctx, server, protocolProperties(properties))
	}
	return "", fmt.Errorf("version of %s: %w", server, load.ErrUnsupported)
}

// CountTable implements database.TableManager.
func (d *Database) CountTable(ctx context.Context, properties map[string]string) (n int64, err error) {
	if p, ok := d.client(properties[PropProtocol]); ok {
		return database.CountTable(ctx, p, protocolProperties(properties))
	}
	err = d.eachPart(ctx, properties, func(c load.Client, table string) error {
		for last := ""; ; {
			keys, err := scanKeys(ctx, c, table, last)
			if err != nil {
				return fmt.Errorf("count the records of %s: %w", table, err)
			}
			if len(keys) > 0 && keys[0] == last { // a scan begins with its first key
				keys = keys[1:]
			}
			if len(keys) == 0 {
				return nil
			}
			if keys[0] < last || !slices.IsSorted(keys) {
				return fmt.Errorf("count the records of %s: the client's scan after %q is not in the order of keys", table, last)
			}
			n, last = n+int64(len(keys)), keys[len(keys)-1]
		}
	})
	return n, err
}

// DropTable implements database.TableManager.
func (d *Database) DropTable(ctx context.Context, properties map[string]string) error {
	if p, ok := d.client(properties[PropProtocol]); ok {
		return database.DropTable(ctx, p, protocolProperties(properties))
	}
	return d.eachPart(ctx, properties, func(c load.Client, table string) error {
		for before := ""; ; {
			keys, err := scanKeys(ctx, c, table, "")
			switch {
			case err != nil:
				return fmt.Errorf("find the records of %s: %w", table, err)
			case len(keys) == 0:
				return nil
			case keys[0] == before:
				return fmt.Errorf("delete record %s of %s: the client reported success, and the record is still there", before, table)
			}
			for _, key := range keys {
				if err := c.Delete(ctx, table, key); err != nil && !errors.Is(err, load.ErrNotFound) {
					return fmt.Errorf("delete record %s of %s: %w", key, table, err)
				}
			}
			before = keys[0]
		}
	})
}

// eachPart calls do with a client of each part of the table that properties name. Servers of http-kv that share the keys
// are parts: no client scans across them.
func (d *Database) eachPart(ctx context.Context, properties map[string]string, do func(c load.Client, table string) error) error {
	table := properties[database.PropTable]
	if table == "" {
		return fmt.Errorf("%w: no table is named", ErrProperty)
	}
	parts := []map[string]string{properties}
	if properties[PropProtocol] == HTTPKV && properties[PropSpread] != spreadAny {
		parts = nil
		for _, server := range strings.Split(properties[PropServers], ",") {
			part := maps.Clone(properties)
			part[PropServers] = server
			parts = append(parts, part)
		}
	}
	for _, part := range parts {
		c, err := d.Open(ctx, part)
		if err != nil {
			return err
		}
		if err := errors.Join(do(c, table), c.Close()); err != nil {
			return err
		}
	}
	return nil
}

const (
	// firstKey precedes all keys of workloads.
	firstKey = "!"
	// scanPage is the number of records of a scan.
	scanPage = 1000
)

// scanKeys returns up to scanPage keys of a table from a key, or from the first one.
func scanKeys(ctx context.Context, c load.Client, table, from string) (keys []string, err error) {
	if from == "" {
		from = firstKey
	}
	_, err = c.Scan(ctx, table, from, scanPage, nil, func(key string, _ []load.Field) { keys = append(keys, key) })
	return keys, err
}

// clientProperties renders the properties of the definition's client, without those of a faulty template.
func (d Definition) clientProperties(data templateData) map[string]string {
	p := map[string]string{PropProtocol: d.Client.Protocol}
	if program := d.clientCommand(); len(program) > 0 {
		text, err := json.Marshal(program)
		if err == nil { // strings always can
			p = map[string]string{PropProgram: string(text)}
		}
	}
	if len(data.Members) == 0 {
		return p
	}
	for name, text := range d.Client.Properties {
		if value, err := render(text, data); err == nil {
			p[name] = value
		}
	}
	return p
}

// protocolProperties are the properties of the protocol's client.
func protocolProperties(properties map[string]string) map[string]string {
	rest := maps.Clone(properties)
	maps.DeleteFunc(rest, func(name, _ string) bool { return strings.HasPrefix(name, "exec.") })
	return rest
}
