-- drop_old: partitions past their retention
SELECT drop_time_partitions(%(table)s, now() - make_interval(days => %(days)s))

-- make_partitions: of the time to come
SELECT make_time_partitions(%(table)s, %(unit)s, %(ahead)s)
