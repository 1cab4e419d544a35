// Package ratetiergrpc limits a gRPC service by plan.
//
//	config := ratetiergrpc.Config{
//		Identify:    identify,
//		MethodCosts: ratetiergrpc.MethodCosts{"/reports.v1.Reports/Export": 5},
//	}
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, config)),
//		grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, config)),
//	)
//
// Put it inside recovery, logging and authentication, which come first in the chain.
//
// Handlers find the admission of their call with [ratetier.FromContext]. A call that may
// not go on ends with a [Refusal]. What is left of the bucket is in the trailer of every
// call that was measured, allowed or refused:
//
//	x-ratelimit-limit      cells in a full bucket
//	x-ratelimit-remaining  cells left
//	x-ratelimit-reset      when the bucket is full again, in Unix seconds, rounded up
//
// It is never in the header: a client does not retry a call that has sent one, whatever
// the error.
package ratetiergrpc

import (
	"context"

	"google.golang.org/grpc"

	ratetier "github.com/ratetier/ratetier/core"
)

// UnaryServerInterceptor returns an interceptor that limits unary calls. It panics if
// the limiter is nil or the config cannot work, naming everything that is wrong.
func UnaryServerInterceptor(limiter *ratetier.Limiter, config Config) grpc.UnaryServerInterceptor {
	g := newGuard(limiter, config)
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if g.skips(ctx, info.FullMethod) {
			return handler(ctx, request)
		}
		e := g.enter(ctx, info.FullMethod, info.FullMethod)
		var reply any
		err := e.refused
		if err == nil {
			reply, err = handler(e.ctx, request)
		}
		e.leave(err)
		return reply, err
	}
}

// StreamServerInterceptor returns an interceptor that limits streaming calls: when they
// are opened, and each message that the client sends if Config.MessageCost says so. It
// panics like [UnaryServerInterceptor].
func StreamServerInterceptor(limiter *ratetier.Limiter, config Config) grpc.StreamServerInterceptor {
	g := newGuard(limiter, config)
	return func(server any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if g.skips(ss.Context(), info.FullMethod) {
			return handler(server, ss)
		}
		e := g.enter(ss.Context(), info.FullMethod, g.route(server, info.FullMethod))
		err := e.refused
		if err == nil {
			err = handler(server, e.stream(ss, info))
		}
		e.leave(err)
		return err
	}
}
