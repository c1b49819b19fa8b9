import random,sys
seed,n=int(sys.argv[1]),int(sys.argv[2]); r=random.Random(seed)
p=print
p("pragma journal_mode=off; create table t(id integer primary key, k text, v real, g int); create table u(k text primary key, n int) without rowid; create index tg on t(g,v);")
p("begin;")
for i in range(n): p(f"insert into t values({i},'k{r.randrange(n)}',{r.random()*1000:.4f},{r.randrange(97)});")
for i in range(n//2): p(f"insert or replace into u values('k{r.randrange(n)}',{r.randrange(1000)});")
p("commit;")
for i in range(n//20):
    p(f"select count(*),sum(v) from t where g={r.randrange(97)} and v>{r.random()*1000:.3f};")
    p(f"update t set v=v+1 where id between {r.randrange(n)} and {r.randrange(n)};" if i%25==0 else f"update t set v={r.random():.5f} where id={r.randrange(n)};")
    p(f"delete from t where id={r.randrange(n)};")
for i in range(n//400+3):
    p(f"select t.g,count(*),max(u.n) from t join u on u.k=t.k where t.v>{r.random()*900:.3f} group by t.g order by 2 desc limit 5;")
    p(f"select upper(substr(k,1,3))||'-'||g from t where k like 'k{r.randrange(9)}%{r.randrange(9)}' order by v limit 7;")
p("select count(distinct k) from t; pragma integrity_check;")
