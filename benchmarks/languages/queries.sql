create table t(a integer primary key, b text, c blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
  insert into t select i, printf('%0100d', i * 7919 % 60013), zeroblob(i % 300) from n;
create index i on t(b);
select count(*), sum(length(c)) from t;
select length(group_concat(b)) from t;
select max(length(x)) from (select group_concat(b) x from t group by a % 7);
select length(hex(zeroblob(20000000)));
delete from t where a % 3 = 0;
vacuum;
select max(b) from t;
drop table t;
.shell [ -z "$REST" ] || exec sh rest.sh
