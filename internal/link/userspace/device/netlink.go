package device

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// inet6AddrGenMode is IFLA_INET6_ADDR_GEN_MODE.
const inet6AddrGenMode = 8

// noAddress is IN6_ADDR_GEN_MODE_NONE: without a link-local address the kernel sends no packets of its own.
const noAddress = 1

// configure sets MTU, queue length and flags of a device in the calling thread's namespace.
func configure(name string, mtu int, flags uint32) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	info := nl.NewIfInfomsg(unix.AF_UNSPEC)
	info.Flags, info.Change = flags, flags
	request.AddData(info)
	request.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	request.AddData(nl.NewRtAttr(unix.IFLA_MTU, uint32Bytes(mtu)))
	request.AddData(nl.NewRtAttr(unix.IFLA_TXQLEN, uint32Bytes(queueLength)))
	families := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	families.AddRtAttr(unix.AF_INET6, nil).AddRtAttr(inet6AddrGenMode, []byte{noAddress})
	request.AddData(families)
	if _, err := request.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("set MTU %d and up: %w", mtu, err)
	}
	return nil
}

func uint32Bytes(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

// setGroup moves a device into a group of devices.
func setGroup(index, group int) error {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	info := nl.NewIfInfomsg(unix.AF_UNSPEC)
	info.Index = int32(index)
	request.AddData(info)
	request.AddData(nl.NewRtAttr(unix.IFLA_GROUP, uint32Bytes(group)))
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// removeGroup removes all devices of a group in one request: the kernel waits 40 ms once instead of once
// per device.
func removeGroup(group int) error {
	request := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
	request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	request.AddData(nl.NewRtAttr(unix.IFLA_GROUP, uint32Bytes(group)))
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
