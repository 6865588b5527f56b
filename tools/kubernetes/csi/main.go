// A CSI driver of one node for tests: a volume is a folder below the one that is given, by its handle.
//
//	csi-driver NAME NODE FOLDER
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const kubelet = "/var/lib/kubelet"

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	name, node, folder, socket string
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	source := filepath.Join(d.folder, filepath.Base(r.GetVolumeId()))
	if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	// A second call for a mounted volume is to change nothing.
	if isMounted(r.GetTargetPath()) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := syscall.Mount(source, r.GetTargetPath(), "", syscall.MS_BIND, ""); err != nil {
		return nil, status.Errorf(codes.Internal, "%s is not mounted: %v", source, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func isMounted(path string) bool {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for _, line := range strings.Split(string(mounts), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}

func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	// A volume that is not mounted is as it should be.
	_ = syscall.Unmount(r.GetTargetPath(), 0)
	if err := os.Remove(r.GetTargetPath()); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: d.name, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Println("registered:", r.GetPluginRegistered(), r.GetError())
	return &registration.RegistrationStatusResponse{}, nil
}

func serve(socket string, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return err
	}
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	register(server)
	return server.Serve(listener)
}

func main() {
	d := &driver{name: os.Args[1], node: os.Args[2], folder: os.Args[3]}
	d.socket = filepath.Join(kubelet, "plugins", d.name, "csi.sock")
	failed := make(chan error)
	go func() {
		failed <- serve(d.socket, func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, d)
			csi.RegisterNodeServer(s, d)
		})
	}()
	go func() {
		failed <- serve(filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock"), func(s *grpc.Server) {
			registration.RegisterRegistrationServer(s, d)
		})
	}()
	fmt.Fprintln(os.Stderr, <-failed)
	os.Exit(1)
}
