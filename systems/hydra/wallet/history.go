package wallet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// A history is in the order of the log, which no wallet knows when it writes an entry: it knows
// how many entries the account had a moment ago. So entries stand on pages, rows of a few each.
// An order merges its entry into the page that it takes for the last one, and checks that it
// still is: that fewer entries are there, when it is done, than would fill it. On a page entries
// stand in the order in which they were merged, which is the log's.
//
//	accounts  ada           {"balance": 700, "entries": 18}
//	entries   ada/page 1    {"k17": {...}, "k18": {...}}
//	          ada/page 0    {"k1": {...}, ... "k16": {...}}
//
//  1. An order reads 15 entries, so its page is 0, and is slow.
//  2. Two others make them 17. Merged into page 0 its entry would stand before theirs.
//  3. The check, of fewer than 16, fails, and the order is tried again for page 1.
//
// Each try has a key of its own, made of the order's: the outcome of a try that failed is
// remembered like any, so that whoever repeats the order comes by the same tries to the one that
// was done, and no two can be done.

const (
	// onPage is how many entries stand on a page.
	onPage = 16
	// maxHistory is how many entries are shown of an account.
	maxHistory = 200
	// maxTries bounds the tries of an order. Each that fails was overtaken by a page of others.
	maxTries = 100
)

// Entry is a line of an account's history.
type Entry struct {
	Kind   string    `json:"kind"` // deposit or transfer
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Amount int64     `json:"amount_cents"`
	At     time.Time `json:"at"`
	ID     string    `json:"id"` // the idempotency key
}

// errPage says that the page of an order has been filled meanwhile.
var errPage = errors.New("a page of the history was filled meanwhile")

// recordEntry does a transaction that is an entry in the history of accounts; failed says what the
// failure of each of its checks means.
func (w *Wallet) recordEntry(ctx context.Context, e Entry, t api.Transaction, failed []error, accounts ...string) (a Source, err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return a, fmt.Errorf("writing an entry: %w", err)
	}
	row, err := command.EncodeJSON(map[string]json.RawMessage{e.ID: text})
	if err != nil {
		return a, fmt.Errorf("writing an entry: %w", err)
	}
	read := api.Local // mostly right, and near
	for n := range maxTries {
		try := t
		if try.RequestID = e.ID; n > 0 {
			try.RequestID = fmt.Sprintf("%s %d", e.ID, n) // no key of a client's has a space
		}
		try.Checks, try.Writes, failed = slices.Clone(t.Checks), slices.Clone(t.Writes), failed[:len(t.Checks):len(t.Checks)]
		for _, name := range accounts {
			page, err := w.lastPage(ctx, name, read)
			if err != nil {
				return a, err
			}
			try.Checks = append(try.Checks, api.Check{Table: Accounts, Key: name, Is: command.Less, Field: "entries", Value: number((page + 1) * onPage)})
			try.Writes = append(try.Writes, api.Write{Do: command.Merge, Table: Entries, Key: pageKey(name, page), Value: row})
			failed = append(failed, errPage)
		}
		if a, err = w.transact(ctx, try, failed); !errors.Is(err, errPage) {
			return a, err
		}
		read = api.Linearizable
	}
	return a, fmt.Errorf("%w: %w", hydraclient.ErrOverloaded, err)
}

// lastPage is the last one of an account's history, as far as a read tells.
func (w *Wallet) lastPage(ctx context.Context, name string, how api.Read) (int64, error) {
	row, err := w.data.Get(ctx, Accounts, name, hydraclient.Read(how))
	if errors.Is(err, hydraclient.ErrNotFound) || errors.Is(err, hydraclient.ErrUnknownTable) {
		return 0, nil // the order's checks decide
	}
	if err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", name, err)
	}
	var have struct{ Entries *int64 }
	if err := json.Unmarshal(row.Value, &have); err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", name, err)
	}
	if have.Entries != nil {
		return *have.Entries / onPage, nil
	}
	// An account of an earlier version, which did not count: from now on it does.
	_, err = w.data.Transact(ctx, api.Transaction{Writes: []api.Write{{Do: command.Add, Table: Accounts, Key: name, Value: json.RawMessage(`{"entries":0}`)}}})
	if err != nil {
		return 0, fmt.Errorf("counting the entries of %s: %w", name, err)
	}
	return 0, nil
}

// pageKey is the key of a page, the newest of which comes first.
func pageKey(account string, page int64) string {
	return fmt.Sprintf("%s/%016x", account, uint64(1<<62-1-page))
}

// History returns the newest entries of an account, the newest first, in the order of the log.
func (w *Wallet) History(ctx context.Context, name string) (all []Entry, a Source, err error) {
	if err := checkName(name); err != nil {
		return nil, a, err
	}
	all = []Entry{}
	// So many pages have them all, unless the account is older than pages are.
	for at := (hydraclient.Page{Prefix: name + "/", Limit: maxHistory/onPage + 2}); ; at.Limit = maxHistory {
		var rows api.Rows
		if rows, a, err = w.scan(ctx, Entries, at); err != nil {
			return nil, a, fmt.Errorf("reading the history of %s: %w", name, err)
		}
		for _, r := range rows.Rows {
			entries, err := decodeEntries(r)
			if err != nil {
				return nil, a, fmt.Errorf("reading the entry %s: %w", strings.ToValidUTF8(r.Key, "?"), err)
			}
			all = append(all, entries...)
		}
		if at.After = rows.Next; at.After == "" || len(all) >= maxHistory {
			return all[:min(len(all), maxHistory)], a, nil
		}
	}
}

// decodeEntries are those of a row, the newest first. Earlier versions had one in a row, whose key
// says when: those come after all pages.
func decodeEntries(r api.Row) (all []Entry, err error) {
	if _, key, _ := strings.Cut(r.Key, "/"); strings.Contains(key, "-") {
		all = make([]Entry, 1)
		return all, json.Unmarshal(r.Value, &all[0])
	}
	in := json.NewDecoder(bytes.NewReader(r.Value))
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	for in.More() {
		var e Entry
		if _, err := in.Token(); err != nil { // its name
			return nil, err
		}
		if err := in.Decode(&e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.Reverse(all)
	return all, nil
}
