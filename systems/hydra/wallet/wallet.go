// Package wallet is the application that shows what Hydra is for: accounts, deposits and
// transfers, and the web page that drives them. It keeps no state: any number of its
// processes, in any cloud, serve the same accounts.
//
//	page ─► /api ─► Wallet ─► one transaction of checks and writes ─► data layer
//
// Money is in whole cents. What is deposited comes out of an account of the bank's, whose
// balance is what the others' is with the sign turned: the sum over all accounts is 0 at
// any moment and in any cloud, or something is broken.
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

// Tables of the wallet.
const (
	Accounts = "wallet_accounts"
	Entries  = "wallet_entries"
)

// bank is the account that deposits come out of. No customer's can have its name.
const bank = "!bank"

// Bounds.
const (
	// MaxAmount of one deposit or transfer, in cents.
	MaxAmount = 1_000_000_000_00
	// maxPage is how many rows the data layer gives at once, and so how many accounts are
	// seen at one moment.
	maxPage = 10_000
)

// Sentinel errors. Those of the client say what became of a request otherwise.
var (
	ErrInvalid      = errors.New("invalid request")
	ErrNoAccount    = errors.New("no such account")
	ErrTaken        = errors.New("the account is there already")
	ErrInsufficient = errors.New("the balance is too low")
	ErrTooMuch      = errors.New("the balance would be too large")
)

// Data is what the wallet asks of the data layer; *client.Client is one.
type Data interface {
	Transact(ctx context.Context, t api.Transaction, options ...hydraclient.Option) (api.Written, error)
	Get(ctx context.Context, table, key string, options ...hydraclient.Option) (api.Row, error)
	Scan(ctx context.Context, table string, p hydraclient.Page, options ...hydraclient.Option) (api.Rows, error)
	CreateTable(ctx context.Context, table string, options ...hydraclient.Option) error
}

// Wallet moves money.
type Wallet struct {
	data Data
	now  func() time.Time
	// patience bounds a linearizable read before a local one is taken in its place.
	patience time.Duration
}

// New returns a wallet on a data layer. The clock dates entries and does not order them.
func New(data Data, now func() time.Time) *Wallet {
	return &Wallet{data: data, now: now, patience: 3 * time.Second}
}

// Account is a customer's.
type Account struct {
	Name    string `json:"name"`
	Balance int64  `json:"balance_cents"`
}

// Source says who has answered from the data layer.
type Source struct {
	Cloud  string `json:"cloud,omitempty"`
	Member string `json:"member,omitempty"`
	// Stale is set where no member could say that nothing newer is there: what was read is
	// what this cloud's database had, at most so many milliseconds old (-1: nobody knows).
	Stale       bool    `json:"stale,omitempty"`
	StalenessMS float64 `json:"staleness_ms,omitempty"`
}

// Sum is the invariant.
type Sum struct {
	Accounts int   `json:"accounts"`
	Total    int64 `json:"total_cents"`     // of all customers
	Deposits int64 `json:"deposited_cents"` // what the bank gave
	Holds    bool  `json:"holds"`
	// Moment is whether all was read at one moment; not beyond 10,000 accounts.
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

// Open opens an account with nothing in it.
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

// Deposit adds money to an account.
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

// Transfer moves money between accounts: wholly or not at all.
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

// add adds to an account's balance, and to the number of its entries.
func add(name string, cents, entries int64) api.Write {
	value := fmt.Sprintf(`{"balance":%d,"entries":%d}`, cents, entries)
	if entries == 0 {
		value = fmt.Sprintf(`{"balance":%d}`, cents)
	}
	return api.Write{Do: command.Add, Table: Accounts, Key: name, Value: json.RawMessage(value)}
}

// transact does a transaction; failed says what the failure of each of its checks means.
func (w *Wallet) transact(ctx context.Context, t api.Transaction, failed []error) (Source, error) {
	var m hydraclient.Meta
	_, err := w.data.Transact(ctx, t, hydraclient.WithMeta(&m), hydraclient.Ack(api.Applied))
	if errors.Is(err, hydraclient.ErrUnknownTable) {
		if err = w.Prepare(ctx); err == nil {
			_, err = w.data.Transact(ctx, t, hydraclient.WithMeta(&m), hydraclient.Ack(api.Applied))
		}
	}
	if errors.Is(err, hydraclient.ErrNotReached) {
		err = nil // it is committed, though this cloud's database does not have it yet
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

// Prepare makes the wallet's tables.
func (w *Wallet) Prepare(ctx context.Context) error {
	for _, table := range []string{Accounts, Entries} {
		if err := w.data.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("making the wallet's table %s: %w", table, err)
		}
	}
	return nil
}

func sourceOf(m hydraclient.Meta) Source { return Source{Cloud: m.Cloud, Member: m.Member} }

// scan reads a page so that it holds all that was acknowledged before; where nobody can
// promise that in time, what this cloud's database has, and says so.
func (w *Wallet) scan(ctx context.Context, table string, p hydraclient.Page) (api.Rows, Source, error) {
	var m hydraclient.Meta
	strict, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	rows, err := w.data.Scan(strict, table, p, hydraclient.WithMeta(&m))
	if err == nil {
		return rows, sourceOf(m), nil
	}
	if errors.Is(err, hydraclient.ErrUnknownTable) {
		return api.Rows{}, sourceOf(m), nil // nobody has written yet
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

// List returns the customers' accounts by name, at most 10,000.
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

// Find returns an account; ErrNoAccount where there is none.
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

// Sum adds up all accounts.
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
