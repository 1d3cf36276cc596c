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

// A history is in the order of the log, which a wallet does not know when it writes an entry. It only knows a recent
// number of entries of the account. So entries are on pages, rows of a few entries each. An order merges its entry into
// the page that it believes to be the last, with a check that the page is not full. Entries on a page are in the order
// of their merges, which is the log's order.
//
//	accounts  ada           {"balance": 700, "entries": 18}
//	entries   ada/page 1    {"k17": {...}, "k18": {...}}
//	          ada/page 0    {"k1": {...}, ... "k16": {...}}
//
//  1. An order reads 15 entries, so its page is 0. The order is slow.
//  2. Two other orders make 17 entries. On page 0 the slow entry would precede theirs.
//  3. The check for fewer than 16 entries fails, and the order is tried again with page 1.
//
// Each try has its own idempotency key, derived from the order's. Failed outcomes are stored, too. A repeated order
// therefore repeats the same tries up to the one that succeeded, and no two tries can succeed.

const (
	onPage     = 16
	maxHistory = 200
	// maxTries bounds the tries of an order. Each failed try was overtaken by a page of entries.
	maxTries = 100
)

type Entry struct {
	Kind   string    `json:"kind"` // deposit or transfer
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Amount int64     `json:"amount_cents"`
	At     time.Time `json:"at"`
	ID     string    `json:"id"` // idempotency key
}

var errPage = errors.New("page of the history is full")

// recordEntry executes a transaction that adds an entry to histories. failed holds the error of each failed check.
func (w *Wallet) recordEntry(ctx context.Context, e Entry, t api.Transaction, failed []error, accounts ...string) (a Source, err error) {
	text, err := json.Marshal(e)
	if err != nil {
		return a, fmt.Errorf("writing an entry: %w", err)
	}
	row, err := command.EncodeJSON(map[string]json.RawMessage{e.ID: text})
	if err != nil {
		return a, fmt.Errorf("writing an entry: %w", err)
	}
	read := api.Local // usually right, and fast
	for n := range maxTries {
		try := t
		if try.RequestID = e.ID; n > 0 {
			try.RequestID = fmt.Sprintf("%s %d", e.ID, n) // clients' keys have no spaces
		}
		try.Checks, try.Writes, failed = slices.Clone(t.Checks), slices.Clone(t.Writes), failed[:len(t.Checks):len(t.Checks)]
		for _, name := range accounts {
			page, err := w.lastPage(ctx, name, read)
			if err != nil {
				return a, err
			}
			try.Checks = append(try.Checks, api.Check{Table: Accounts, Key: name, Is: command.Less, Field: "entries",
				Value: number((page + 1) * onPage)})
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

func (w *Wallet) lastPage(ctx context.Context, name string, how api.Read) (int64, error) {
	row, err := w.data.Get(ctx, Accounts, name, hydraclient.Read(how))
	if errors.Is(err, hydraclient.ErrNotFound) || errors.Is(err, hydraclient.ErrUnknownTable) {
		return 0, nil // the order's checks decide
	}
	if err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", name, err)
	}
	var have struct{ Entries int64 }
	if err := json.Unmarshal(row.Value, &have); err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", name, err)
	}
	return have.Entries / onPage, nil
}

// pageKey returns the key of a page; newer pages sort first.
func pageKey(account string, page int64) string {
	return fmt.Sprintf("%s/%016x", account, uint64(1<<62-1-page))
}

// History returns the newest entries of an account, newest first, in log order.
func (w *Wallet) History(ctx context.Context, name string) (all []Entry, a Source, err error) {
	if err := checkName(name); err != nil {
		return nil, a, err
	}
	rows, a, err := w.scan(ctx, Entries, hydraclient.Page{Prefix: name + "/", Limit: maxHistory/onPage + 2})
	if err != nil {
		return nil, a, fmt.Errorf("reading the history of %s: %w", name, err)
	}
	all = []Entry{}
	for _, r := range rows.Rows {
		entries, err := decodeEntries(r)
		if err != nil {
			return nil, a, fmt.Errorf("reading the entry %s: %w", strings.ToValidUTF8(r.Key, "?"), err)
		}
		all = append(all, entries...)
	}
	return all[:min(len(all), maxHistory)], a, nil
}

// decodeEntries returns a page's entries, newest first.
func decodeEntries(r api.Row) (all []Entry, err error) {
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
