// Parallel use: with many requests in flight nothing is lost and nothing is invented.

package sdk

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// together runs `work(0)` … `work(count - 1)` in parallel and waits for all.
func together(count int, work func(n int) error) []error {
	failures := make([]error, count)
	var group sync.WaitGroup
	for n := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			failures[n] = work(n)
		}()
	}
	group.Wait()
	return failures
}

func statusOf(err error) int {
	var refusal *azcore.ResponseError
	if errors.As(err, &refusal) {
		return refusal.StatusCode
	}
	return 0
}

func TestInsertsAndReadsInFlightTogether(t *testing.T) {
	table := newTable(t)
	must(t, errors.Join(together(100, func(n int) error {
		partition, row := fmt.Sprintf("p%d", n%7), fmt.Sprint(n)
		if _, err := table.AddEntity(ctx, entityIn(partition, row, properties{"n": int32(n)}), nil); err != nil {
			return err
		}
		_, err := table.GetEntity(ctx, partition, row, nil)
		return err
	})...))
	seen := map[int32]int{}
	for _, found := range list(t, table, nil) {
		seen[found.Properties["n"].(int32)]++
	}
	equal(t, len(seen), 100)
	for n := range int32(100) {
		equal(t, seen[n], 1)
	}
}

func TestOfInsertsOfTheSameEntityOneWins(t *testing.T) {
	table := newTable(t)
	winners := []int{}
	for n, err := range together(40, func(n int) error {
		_, err := table.AddEntity(ctx, entity("r", properties{"winner": int32(n)}), nil)
		return err
	}) {
		if err == nil {
			winners = append(winners, n)
		} else {
			equal(t, statusOf(err), 409)
		}
	}
	equal(t, len(winners), 1)
	equal(t, stored(t, table), properties{"winner": int32(winners[0])})
}

func TestCountingWithEtagsLosesNoUpdate(t *testing.T) {
	table := newTable(t)
	add(t, table, entity("r", properties{"count": int32(0)}))
	addOne := func() error {
		for {
			found, err := table.GetEntity(ctx, "p", "r", nil)
			if err != nil {
				return err
			}
			count := decode(t, found.Value).Properties["count"].(int32)
			if _, err = update(table, aztables.UpdateModeReplace, &found.ETag, properties{"count": count + 1}); statusOf(err) != 412 {
				return err
			}
		}
	}
	must(t, errors.Join(together(8, func(int) error {
		for range 10 {
			if err := addOne(); err != nil {
				return err
			}
		}
		return nil
	})...))
	equal(t, stored(t, table), properties{"count": int32(80)})
}

func TestMergesOfDifferentPropertiesAllStay(t *testing.T) {
	table := newTable(t)
	must(t, errors.Join(together(100, func(n int) error {
		_, err := upsert(table, aztables.UpdateModeMerge, properties{fmt.Sprintf("p%d", n): int32(n)})
		return err
	})...))
	found := stored(t, table)
	equal(t, len(found), 100)
	for n := range 100 {
		equal(t, found[fmt.Sprintf("p%d", n)], int32(n))
	}
}

func TestReadersSeeAllOfATransactionOrNothing(t *testing.T) {
	table := newTable(t)
	write := func(n int) error {
		all := actions{}
		for row := range 20 {
			all = append(all, action(opInsertReplace, fmt.Sprintf("%02d", row), properties{"n": int32(n)}))
		}
		_, err := table.SubmitTransaction(ctx, all, nil)
		return err
	}
	must(t, write(0))
	must(t, errors.Join(together(60, func(n int) error {
		if n%2 == 1 {
			return write(n)
		}
		found, err := tryList(table, nil)
		values := map[any]bool{}
		for _, one := range found {
			values[one.Properties["n"]] = true
		}
		if err == nil && (len(found) != 20 || len(values) != 1) {
			return fmt.Errorf("%d rows with %d values", len(found), len(values))
		}
		return err
	})...))
}
