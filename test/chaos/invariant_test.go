package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"skerry/systems/hydra/deploy"
)

// auditEvery is the interval between two queries of a cloud's database.
const auditEvery = 300 * time.Millisecond

// audit sums the accounts in a cloud's database repeatedly, with SQL and without its members. Including the bank's
// account, the sum is always 0.
func (k *work) audit(ctx context.Context, c deploy.CloudNodes) {
	for ; ctx.Err() == nil; time.Sleep(auditEvery) {
		sum, err := k.addUp(c)
		if err != nil {
			continue // unreachable or not yet created
		}
		if sum != 0 {
			k.w.t.Errorf("the accounts in the database of %s add up to %d", c.Name, sum)
		}
		k.audits.Add(1)
	}
}

func (k *work) addUp(c deploy.CloudNodes) (sum int64, err error) {
	ctx, cancel := context.WithTimeout(k.w.t.Context(), 10*time.Second)
	defer cancel()
	err = k.w.operators[c.Name].try(func(db *sql.DB) error {
		rows, err := texts(ctx, db, "SELECT value FROM wallet_accounts")
		for _, text := range rows {
			var v struct{ Balance int64 }
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return fmt.Errorf("an account is %q: %w", text, err)
			}
			sum += v.Balance
		}
		return err
	})
	return sum, err
}
