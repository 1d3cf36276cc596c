// Package wallet is Hydra's demo application: accounts, deposits and transfers, with a web
// page. It is stateless: any number of processes in any cloud serve the same accounts.
//
//	page ─► /api ─► Wallet ─► one transaction of checks and writes ─► data layer
//
// Money is in whole cents. Deposits come from the bank's account, whose balance is the negative
// sum of all others. Invariant: the sum over all accounts is 0 at any moment in any cloud.
package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

const (
	Accounts = "wallet_accounts"
	Entries  = "wallet_entries"
)

// bank is the source of deposits. Customers' names cannot contain "!".
const bank = "!bank"

const (
	// MaxAmount of one deposit or transfer, in cents.
	MaxAmount = 1_000_000_000_00
	// maxPage is the data layer's page size, and so the number of accounts in one consistent read.
	maxPage = 10_000
)

var (
	ErrInvalid      = errors.New("invalid request")
	ErrNoAccount    = errors.New("no such account")
	ErrTaken        = errors.New("account exists")
	ErrInsufficient = errors.New("balance is too low")
	ErrTooMuch      = errors.New("balance would be too large")
)

// Data is the data layer, implemented by hydraclient.Client and by a fake in tests.
type Data interface {
	Transact(ctx context.Context, t api.Transaction, options ...hydraclient.Option) (api.Written, error)
	Get(ctx context.Context, table, key string, options ...hydraclient.Option) (api.Row, error)
	Scan(ctx context.Context, table string, p hydraclient.Page, options ...hydraclient.Option) (api.Rows, error)
	CreateTable(ctx context.Context, table string, options ...hydraclient.Option) error
}

// Wallet executes orders on accounts.
type Wallet struct {
	data Data
	now  func() time.Time
	// patience bounds a linearizable read; then a local read follows.
	patience time.Duration
}

// New returns a wallet. The clock dates entries, but does not order them.
func New(data Data, now func() time.Time) *Wallet {
	return &Wallet{data: data, now: now, patience: 3 * time.Second}
}

type Account struct {
	Name    string `json:"name"`
	Balance int64  `json:"balance_cents"`
}

// Source names the member that answered.
type Source struct {
	Cloud  string `json:"cloud,omitempty"`
	Member string `json:"member,omitempty"`
	// Stale means that no member could answer with the newest state in time. The state is at most
	// StalenessMS old (-1: unknown).
	Stale       bool    `json:"stale,omitempty"`
	StalenessMS float64 `json:"staleness_ms,omitempty"`
}

// Sum is the check of the invariant.
type Sum struct {
	Accounts int   `json:"accounts"`
	Total    int64 `json:"total_cents"`     // of all customers
	Deposits int64 `json:"deposited_cents"` // sum of deposits
	Holds    bool  `json:"holds"`
	// Moment means that one consistent read covered all accounts, which is possible up to 10,000.
	Moment bool `json:"one_moment"`
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%w: the name %.40q is not 1 to 32 lower-case letters, digits and hyphens", ErrInvalid, name)
	}
	return nil
}

func checkAmount(cents int64) error {
	if cents < 1 || cents > MaxAmount {
		return fmt.Errorf("%w: an amount is from 1 to %d cents", ErrInvalid, int64(MaxAmount))
	}
	return nil
}

// Open creates an empty account.
func (w *Wallet) Open(ctx context.Context, id, name string) (Source, error) {
	if err := checkName(name); err != nil {
		return Source{}, err
	}
	return w.transact(ctx, api.Transaction{
		RequestID: id,
		Checks:    []api.Check{{Table: Accounts, Key: name, Is: command.Absent}},
		Writes:    []api.Write{{Do: command.Put, Table: Accounts, Key: name, Value: json.RawMessage(`{"balance":0,"entries":0}`)}},
	}, []error{ErrTaken})
}

func (w *Wallet) Deposit(ctx context.Context, id, to string, cents int64) (Source, error) {
	if err := errors.Join(checkName(to), checkAmount(cents)); err != nil {
		return Source{}, err
	}
	e := Entry{Kind: "deposit", To: to, Amount: cents, At: w.now().UTC(), ID: id}
	return w.recordEntry(ctx, e, api.Transaction{
		Checks: []api.Check{{Table: Accounts, Key: to, Is: command.Exists}},
		Writes: []api.Write{add(bank, -cents, 0), add(to, cents, 1)},
	}, []error{ErrNoAccount}, to)
}

// Transfer moves money between accounts atomically.
func (w *Wallet) Transfer(ctx context.Context, id, from, to string, cents int64) (Source, error) {
	if err := errors.Join(checkName(from), checkName(to), checkAmount(cents)); err != nil {
		return Source{}, err
	}
	if from == to {
		return Source{}, fmt.Errorf("%w: from %s to itself", ErrInvalid, from)
	}
	e := Entry{Kind: "transfer", From: from, To: to, Amount: cents, At: w.now().UTC(), ID: id}
	return w.recordEntry(ctx, e, api.Transaction{
		Checks: []api.Check{
			{Table: Accounts, Key: from, Is: command.Exists},
			{Table: Accounts, Key: to, Is: command.Exists},
			{Table: Accounts, Key: from, Is: command.GreaterOrEqual, Field: "balance", Value: number(cents)},
		},
		Writes: []api.Write{add(from, -cents, 1), add(to, cents, 1)},
	}, []error{ErrNoAccount, ErrNoAccount, ErrInsufficient}, from, to)
}

func number(n int64) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }

func add(name string, cents, entries int64) api.Write {
	value := fmt.Sprintf(`{"balance":%d,"entries":%d}`, cents, entries)
	if entries == 0 {
		value = fmt.Sprintf(`{"balance":%d}`, cents)
	}
	return api.Write{Do: command.Add, Table: Accounts, Key: name, Value: json.RawMessage(value)}
}

func (w *Wallet) transact(ctx context.Context, t api.Transaction, failed []error) (Source, error) {
	var m hydraclient.Meta
	_, err := w.data.Transact(ctx, t, hydraclient.WithMeta(&m), hydraclient.Ack(api.Applied))
	if errors.Is(err, hydraclient.ErrUnknownTable) {
		if err = w.Prepare(ctx); err == nil {
			_, err = w.data.Transact(ctx, t, hydraclient.WithMeta(&m), hydraclient.Ack(api.Applied))
		}
	}
	if errors.Is(err, hydraclient.ErrNotReached) {
		err = nil // committed, not applied in this cloud yet
	}
	var answer *hydraclient.Error
	if errors.As(err, &answer) {
		switch {
		case answer.Code == api.CodeCheckFailed && answer.Failed != nil && *answer.Failed < len(failed):
			err = fmt.Errorf("%w: %w", failed[*answer.Failed], err)
		case answer.Code == api.CodeBadField:
			err = fmt.Errorf("%w: %w", ErrTooMuch, err)
		}
	}
	return sourceOf(m), err
}

// Prepare creates the wallet's tables.
func (w *Wallet) Prepare(ctx context.Context) error {
	for _, table := range []string{Accounts, Entries} {
		if err := w.data.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("creating the wallet's table %s: %w", table, err)
		}
	}
	return nil
}

func sourceOf(m hydraclient.Meta) Source { return Source{Cloud: m.Cloud, Member: m.Member} }

// scan reads a page linearizably or, if that fails in time, locally and marked stale.
func (w *Wallet) scan(ctx context.Context, table string, p hydraclient.Page) (api.Rows, Source, error) {
	var m hydraclient.Meta
	strict, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	rows, err := w.data.Scan(strict, table, p, hydraclient.WithMeta(&m))
	if err == nil {
		return rows, sourceOf(m), nil
	}
	if errors.Is(err, hydraclient.ErrUnknownTable) {
		return api.Rows{}, sourceOf(m), nil // no account yet
	}
	if ctx.Err() != nil || !errors.Is(err, hydraclient.ErrUnavailable) && !errors.Is(err, hydraclient.ErrInDoubt) && strict.Err() == nil {
		return rows, sourceOf(m), err
	}
	m.Staleness = -1
	rows, err = w.data.Scan(ctx, table, p, hydraclient.Read(api.Local), hydraclient.WithMeta(&m))
	if errors.Is(err, hydraclient.ErrUnknownTable) {
		err = nil
	}
	a := sourceOf(m)
	a.Stale, a.StalenessMS = true, -1
	if m.Staleness >= 0 {
		a.StalenessMS = float64(m.Staleness.Microseconds()) / 1000
	}
	return rows, a, err
}

// List returns at most 10,000 customers' accounts by name.
func (w *Wallet) List(ctx context.Context) ([]Account, Source, error) {
	rows, a, err := w.scan(ctx, Accounts, hydraclient.Page{Limit: maxPage})
	if err != nil {
		return nil, a, fmt.Errorf("listing the accounts: %w", err)
	}
	all := make([]Account, 0, len(rows.Rows))
	for _, r := range rows.Rows {
		if r.Key == bank {
			continue
		}
		balance, err := decodeBalance(r)
		if err != nil {
			return nil, a, err
		}
		all = append(all, Account{Name: r.Key, Balance: balance})
	}
	return all, a, nil
}

// Find returns an account, or ErrNoAccount.
func (w *Wallet) Find(ctx context.Context, name string) (Account, Source, error) {
	if err := checkName(name); err != nil {
		return Account{}, Source{}, err
	}
	rows, a, err := w.scan(ctx, Accounts, hydraclient.Page{From: name, Limit: 1})
	if err == nil && (len(rows.Rows) == 0 || rows.Rows[0].Key != name) {
		err = ErrNoAccount
	}
	if err != nil {
		return Account{}, a, fmt.Errorf("reading the account %s: %w", name, err)
	}
	balance, err := decodeBalance(rows.Rows[0])
	return Account{Name: name, Balance: balance}, a, err
}

func decodeBalance(r api.Row) (int64, error) {
	var row struct {
		Balance int64 `json:"balance"`
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", r.Key, err)
	}
	return row.Balance, nil
}

func (w *Wallet) Sum(ctx context.Context) (Sum, Source, error) {
	s := Sum{Moment: true}
	page := hydraclient.Page{Limit: maxPage}
	for {
		rows, a, err := w.scan(ctx, Accounts, page)
		if err != nil {
			return s, a, fmt.Errorf("adding up the accounts: %w", err)
		}
		for _, r := range rows.Rows {
			balance, err := decodeBalance(r)
			switch {
			case err != nil:
				return s, a, err
			case r.Key == bank:
				s.Deposits = -balance
			default:
				s.Accounts++
				s.Total += balance
			}
		}
		if page.After = rows.Next; page.After == "" {
			s.Holds = s.Total == s.Deposits
			return s, a, nil
		}
		s.Moment = false
	}
}
