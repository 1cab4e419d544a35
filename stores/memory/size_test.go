package memorystore

import (
	"testing"
	"unsafe"
)

func TestShardFillsWholeCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(shard{}); size%64 != 0 {
		t.Errorf("a shard is %d bytes, which is not whole cache lines of 64", size)
	}
}
