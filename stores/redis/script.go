package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name by which Redis knows a script
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

//go:embed gcra.lua
var source string

// reset is what to ask of the script to make a bucket full.
const reset = "x"

// ask returns what to ask of the script for the request.
func ask(request *ratetier.Request) string {
	var memory [64]byte // enough for most, and not on the heap
	b := memory[:1]
	switch request.Mode {
	case ratetier.ModeCharge:
		b[0] = 'c'
	case ratetier.ModeRefund:
		b[0] = 'r'
	default:
		b[0] = 't'
	}
	for _, limit := range request.Limits {
		// No more can be charged or given back than is ever used.
		cost := limit.Offset + int64(gcra.Lateness)
		if hi, lo := bits.Mul64(uint64(limit.Interval), uint64(request.Cost)); hi == 0 && lo < uint64(cost) {
			cost = int64(lo)
		}
		for _, ns := range [...]int64{limit.Offset, cost} {
			b = strconv.AppendInt(append(b, ' '), ns/1000, 10)
			b = strconv.AppendInt(append(b, ' '), ns%1000, 10)
		}
	}
	return string(b)
}

// once is a call of the script that the client never sends again by itself: one whose
// answer was lost may have been charged.
type once struct{ *redis.IntSliceCmd }

// NoRetry is what go-redis asks before it tries again.
func (once) NoRetry() bool { return true }

// script calls gcra.lua for many checks at a time.
type script struct {
	rdb    redis.UniversalClient
	source string
	sha    string        // by which Redis knows the source
	prefix string        // of the keys, which no error may tell
	clock  func() string // the time to go by, or "" for that of the server

	// alone tells that a call can have one key only: on what spreads keys over
	// servers, be it a client or a proxy. Such calls travel in a pipeline.
	alone atomic.Bool

	calls, checks, reloads atomic.Uint64 // made, what they were for, and how often anew
}

// set sets the source of the script.
func (s *script) set(source string) {
	sum := sha1.Sum([]byte(source))
	s.source, s.sha = source, hex.EncodeToString(sum[:])
}

// run has all checks answered. A call is made again only after an answer which tells that
// nothing was done: that the script is unknown, or that the keys are not of one server.
func (s *script) run(ctx context.Context, checks []*check) {
	s.checks.Add(uint64(len(checks)))
	if len(checks) > 1 && s.alone.Load() {
		s.runApart(ctx, checks)
		return
	}
	cmd := s.call(ctx, checks, "evalsha", &s.sha)
	if unknown(cmd) {
		s.reloads.Add(1)
		cmd = s.call(ctx, checks, "eval", &s.source)
	}
	if len(checks) > 1 && answered(cmd, "CROSSSLOT") {
		s.alone.Store(true)
		s.runApart(ctx, checks)
		return
	}
	s.answer(checks, cmd)
}

// runApart does so by calls with one key each.
func (s *script) runApart(ctx context.Context, checks []*check) {
	var again []*check
	for i, cmd := range s.pipeline(ctx, checks, "evalsha", &s.sha) {
		if unknown(cmd) {
			again = append(again, checks[i])
		} else {
			s.answer(checks[i:i+1], cmd)
		}
	}
	if again == nil {
		return
	}
	s.reloads.Add(uint64(len(again)))
	for i, cmd := range s.pipeline(ctx, again, "eval", &s.source) {
		s.answer(again[i:i+1], cmd)
	}
}

// call makes one call for all checks.
func (s *script) call(ctx context.Context, checks []*check, verb any, script *string) (cmd once) {
	s.calls.Add(1)
	cmd = s.newCall(ctx, checks, verb, script)
	defer recovered(cmd)
	_ = s.rdb.Process(ctx, cmd) // the command keeps its error
	return cmd
}

// pipeline makes a call for each check, all in one go.
func (s *script) pipeline(ctx context.Context, checks []*check, verb any, script *string) (cmds []once) {
	s.calls.Add(uint64(len(checks)))
	cmds = make([]once, len(checks))
	for i := range checks {
		cmds[i] = s.newCall(ctx, checks[i:i+1], verb, script)
	}
	defer recovered(cmds...)
	pipe := s.rdb.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // which only queues it
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	return cmds
}

// recovered gives the commands an error if the client panicked: its hooks are the user's
// code, and no server recovers the goroutines of a store.
func recovered(cmds ...once) {
	if p := recover(); p != nil {
		for _, cmd := range cmds {
			cmd.SetErr(fmt.Errorf("the client panicked with a %T", p))
		}
	}
}

// unknown tells whether Redis did not know the script.
func unknown(cmd once) bool { return answered(cmd, "NOSCRIPT") }

// answered tells whether Redis answered with an error that begins like that.
func answered(cmd once, prefix string) bool {
	err := cmd.Err()
	return err != nil && redis.HasErrorPrefix(err, prefix)
}

func (s *script) newCall(ctx context.Context, checks []*check, verb any, script *string) once {
	const beforeKeys = 3
	args := make([]any, 0, beforeKeys+len(checks)+1+len(checks))
	args = append(args, verb, script, len(checks))
	for _, c := range checks {
		args = append(args, &c.key)
	}
	args = append(args, s.clock())
	for _, c := range checks {
		args = append(args, &c.ask)
	}
	cmd := once{redis.NewIntSliceCmd(ctx, args...)}
	cmd.SetFirstKeyPos(beforeKeys)
	return cmd
}

// answer gives each check of a call its result, or the error of the call.
func (s *script) answer(checks []*check, cmd once) {
	reply, err := cmd.Result()
	if err != nil {
		err = s.withoutKeys(err)
	}
	for _, c := range checks {
		size := 1 + 2*c.rates
		if err == nil && len(reply) < size {
			err = errors.New("redisstore: Redis gave a short answer")
		}
		if err == nil {
			c.result.Allowed = reply[0] == 1
			for i := range c.rates {
				c.result.Used[i] = reply[1+2*i]*1000 + reply[2+2*i]
			}
			reply = reply[size:]
		}
		c.finish(err)
	}
}

// refusal is an error that Redis answered with. To go-redis it is one too, and so to
// [redis.HasErrorPrefix].
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError is what go-redis knows its errors by.
func (refusal) RedisError() {}

// withoutKeys returns the error with what Redis quotes cut off: to a command that it
// does not know it answers with the arguments.
func (s *script) withoutKeys(err error) error {
	var answered redis.Error
	if !errors.As(err, &answered) {
		return fmt.Errorf("redisstore: %w", err)
	}
	text, _, _ := strings.Cut(answered.Error(), ", with args")
	if strings.Contains(text, s.prefix) {
		text, _, _ = strings.Cut(text, " ")
	}
	return fmt.Errorf("redisstore: Redis answers: %w", refusal(text))
}
