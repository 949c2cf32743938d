"""Every setting: Kafka's name, type, default, check, and where it may be altered. No other package knows names.

`load` reads a broker's settings; `BrokerConfig` and `TopicConfig` hold those in force as typed attributes.
"""

from odradek.config.broker import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener
from odradek.config.load import load
from odradek.config.topic import TopicConfig

__all__ = ["BrokerConfig", "ConfigError", "Listener", "TopicConfig", "load"]
