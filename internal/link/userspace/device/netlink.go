package device

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// inet6AddrGenMode is IFLA_INET6_ADDR_GEN_MODE.
const inet6AddrGenMode = 8

// noAddress is IN6_ADDR_GEN_MODE_NONE: without a link-local address the kernel sends no packets itself.
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

// keptSegmentation lists the segmentation that a virtio_net_hdr can express on every kernel since 5.11.
// USO needs 6.2: without it the kernel cuts QUIC over a veth link.
var keptSegmentation = []string{
	"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
}

// limitOffloads makes the kernel cut super-packets that a virtio_net_hdr cannot describe, such as those of
// tunnels. The packet socket would drop them.
func limitOffloads(device string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	names, err := featureNames(s, device)
	if err != nil {
		return err
	}
	// struct ethtool_sfeatures: cmd, blocks, then {valid, requested} for 32 features.
	blocks := (len(names) + 31) / 32
	set := make([]byte, 8+8*blocks)
	binary.NativeEndian.PutUint32(set, unix.ETHTOOL_SFEATURES)
	binary.NativeEndian.PutUint32(set[4:], uint32(blocks))
	for i, name := range names {
		if mustDisable(name) {
			valid := set[8+8*(i/32):]
			binary.NativeEndian.PutUint32(valid, binary.NativeEndian.Uint32(valid)|1<<(i%32))
		}
	}
	return ethtool(s, device, set)
}

func mustDisable(feature string) bool {
	for _, name := range keptSegmentation {
		if feature == name {
			return false
		}
	}
	return strings.HasPrefix(feature, "tx-") && strings.HasSuffix(feature, "segmentation") ||
		strings.HasPrefix(feature, "tx-vlan-") || feature == "tx-gso-partial" || feature == "tx-gso-list"
}

// featureNames returns the names of a device's features by number.
func featureNames(s int, device string) ([]string, error) {
	const setFeatures, nameLength = 4, 32 // ETH_SS_FEATURES, ETH_GSTRING_LEN
	info := make([]byte, 24)              // struct ethtool_sset_info: cmd, reserved, mask, lengths
	binary.NativeEndian.PutUint32(info, unix.ETHTOOL_GSSET_INFO)
	binary.NativeEndian.PutUint64(info[8:], 1<<setFeatures)
	if err := ethtool(s, device, info); err != nil {
		return nil, err
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	list := make([]byte, 12+n*nameLength) // struct ethtool_gstrings: cmd, set, length, names
	binary.NativeEndian.PutUint32(list, unix.ETHTOOL_GSTRINGS)
	binary.NativeEndian.PutUint32(list[4:], setFeatures)
	binary.NativeEndian.PutUint32(list[8:], uint32(n))
	if err := ethtool(s, device, list); err != nil {
		return nil, err
	}
	names := make([]string, n)
	for i := range names {
		names[i] = unix.ByteSliceToString(list[12+i*nameLength:][:nameLength])
	}
	return names, nil
}

// ethtool runs the ethtool command in data.
func ethtool(s int, device string, data []byte) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&data[0])
	request := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&data[0])}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
