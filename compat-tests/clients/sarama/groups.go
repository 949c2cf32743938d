package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"

	"odradek/serving"
)

func (l *library) ListGroups(ctx context.Context) ([]string, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) ([]string, error) {
		groups, err := admin.ListConsumerGroups()
		return slices.Collect(maps.Keys(groups)), err
	})
}

func (l *library) DescribeGroup(ctx context.Context, group string) (serving.GroupDescription, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (serving.GroupDescription, error) {
		described, err := admin.DescribeConsumerGroups([]string{group})
		if err != nil {
			return serving.GroupDescription{}, err
		}
		told := described[0]
		if told.Err != sarama.ErrNoError {
			return serving.GroupDescription{}, told.Err
		}
		instances := []string{}
		for _, one := range told.Members {
			if one.GroupInstanceId != nil {
				instances = append(instances, *one.GroupInstanceId)
			}
		}
		slices.Sort(instances)
		return serving.GroupDescription{
			State: told.State, Protocol: told.Protocol, Members: len(told.Members), Instances: instances,
		}, nil
	})
}

func (l *library) DeleteGroup(ctx context.Context, group string) error {
	return l.do(ctx, func(admin sarama.ClusterAdmin) error { return admin.DeleteConsumerGroup(group) })
}

// Committed asks again while the coordinator loads the group, which sarama does not.
func (l *library) Committed(ctx context.Context, group string, partition serving.TopicPartition) (*int64, error) {
	for {
		offset, err := l.committedNow(ctx, group, partition)
		if !errors.Is(err, sarama.ErrOffsetsLoadInProgress) {
			return offset, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (l *library) committedNow(ctx context.Context, group string, partition serving.TopicPartition) (*int64, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (*int64, error) {
		asked := map[string][]int32{partition.Topic: {partition.Partition}}
		offsets, err := admin.ListConsumerGroupOffsets(group, asked)
		if err != nil {
			return nil, err
		}
		if told := offsets.GroupError(); told != sarama.ErrNoError {
			return nil, told
		}
		block := offsets.GetBlock(partition.Topic, partition.Partition)
		if block == nil {
			return nil, errors.New("the answer is not for the partition that was asked for")
		}
		if block.Err != sarama.ErrNoError {
			return nil, block.Err
		}
		if block.Offset < 0 {
			return nil, nil
		}
		return &block.Offset, nil
	})
}

func (l *library) AlterOffset(ctx context.Context, group string, partition serving.TopicPartition, offset int64) error {
	offsets := map[string]map[int32]sarama.OffsetAndMetadata{
		partition.Topic: {partition.Partition: {Offset: offset, LeaderEpoch: -1}},
	}
	return l.do(ctx, func(admin sarama.ClusterAdmin) error {
		answer, err := admin.AlterConsumerGroupOffsets(group, offsets, nil)
		if err != nil {
			return err
		}
		if told := answer.Errors[partition.Topic][partition.Partition]; told != sarama.ErrNoError {
			return told
		}
		return nil
	})
}

// DescribeCluster asks a broker itself for the cluster's id, which sarama's admin client does not tell.
func (l *library) DescribeCluster(ctx context.Context) (serving.ClusterDescription, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (serving.ClusterDescription, error) {
		controller, err := admin.Controller()
		if err != nil {
			return serving.ClusterDescription{}, err
		}
		told, err := controller.GetMetadata(sarama.NewMetadataRequest(l.version, nil))
		if err != nil {
			return serving.ClusterDescription{}, err
		}
		described := serving.ClusterDescription{ClusterID: *told.ClusterID, Controller: told.ControllerID}
		for _, broker := range told.Brokers {
			host, port, err := net.SplitHostPort(broker.Addr())
			if err != nil {
				return described, err
			}
			number, err := strconv.ParseInt(port, 10, 32)
			if err != nil {
				return described, err
			}
			described.Nodes = append(described.Nodes, serving.Node{ID: broker.ID(), Host: host, Port: int32(number)})
		}
		return described, nil
	})
}
