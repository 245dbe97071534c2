// e_1_5_40_16: in1 tmp0
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

void e_1_5_40_16(float* restrict data0, float* restrict data1) {
  for (int ridx23 = 0; ridx23 < 2; ridx23++) {
    for (int ridx19 = 0; ridx19 < 4; ridx19++) {
      long alu1 = ((long)ridx19);
      long alu2 = (alu1*640L);
      long alu3 = (alu1*16L);
      for (int ridx24 = 0; ridx24 < 16; ridx24++) {
        long alu4 = ((((long)ridx23)*16L)+((long)ridx24));
        long alu5 = (alu4*16L);
        long alu6 = (alu4*65L);
        f32x8 val7 = *(f32x8u*)(data0+(alu6+alu3));
        *(f32x8u*)(data1+(alu2+alu5)) = val7;
        f32x8 val8 = *(f32x8u*)(data0+(alu6+(alu3+8L)));
        *(f32x8u*)(data1+(alu2+(alu5+8L))) = val8;
      }
    }
  }
  for (int ridx21 = 0; ridx21 < 4; ridx21++) {
    long alu9 = ((long)ridx21);
    long alu10 = (alu9*640L);
    long alu11 = (alu9*16L);
    for (int ridx18 = 0; ridx18 < 8; ridx18++) {
      long alu12 = ((long)ridx18);
      long alu13 = (alu12*16L);
      long alu14 = ((alu12*65L)+2080L);
      f32x8 val15 = *(f32x8u*)(data0+(alu14+alu11));
      *(f32x8u*)(data1+(alu10+(alu13+512L))) = val15;
      f32x8 val16 = *(f32x8u*)(data0+(alu14+(alu11+8L)));
      *(f32x8u*)(data1+(alu10+(alu13+520L))) = val16;
    }
  }
  for (int ridx45 = 0; ridx45 < 1; ridx45++) {
    for (int ridx46 = 0; ridx46 < 40; ridx46++) {
      long alu17 = ((long)ridx46);
      long alu18 = (alu17*16L);
      float val19 = data0[((alu17*65L)+64L)];
      data1[(alu18+2560L)] = val19;
      *(f32x8u*)(data1+(alu18+2561L)) = (0.0f-(f32x8){});
      { f32x8 part = (0.0f-(f32x8){}); for (int k = 0; k < 7; k++) (data1+(alu18+2569L))[k] = part[k]; }
    }
  }
}

// r_48_65: in0 tmp0 tmp1
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));

enum {r_48_65_steps = 9};
void r_48_65(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx21 = (first>0)?first-0:0; ridx21 < ((last<8)?last-0:8); ridx21++) {
    long alu1 = ((long)ridx21);
    long alu2 = (alu1*390L);
    long alu3 = (alu1*240L);
    long alu4 = (alu2+65L);
    long alu5 = (alu2+130L);
    long alu6 = (alu2+195L);
    long alu7 = (alu2+260L);
    long alu8 = (alu2+325L);
    for (int ridx10 = 0; ridx10 < 4; ridx10++) {
      long alu9 = ((long)ridx10);
      long alu10 = (alu9*16L);
      f32x8 acc0;
      acc0 = (0.0f-(f32x8){});
      long alu11 = (alu9*640L);
      f32x8 acc1;
      acc1 = (0.0f-(f32x8){});
      f32x8 acc2;
      acc2 = (0.0f-(f32x8){});
      f32x8 acc3;
      acc3 = (0.0f-(f32x8){});
      f32x8 acc4;
      acc4 = (0.0f-(f32x8){});
      f32x8 acc5;
      acc5 = (0.0f-(f32x8){});
      f32x8 acc6;
      acc6 = (0.0f-(f32x8){});
      f32x8 acc7;
      acc7 = (0.0f-(f32x8){});
      f32x8 acc8;
      acc8 = (0.0f-(f32x8){});
      f32x8 acc9;
      acc9 = (0.0f-(f32x8){});
      f32x8 acc10;
      acc10 = (0.0f-(f32x8){});
      f32x8 acc11;
      acc11 = (0.0f-(f32x8){});
      #pragma GCC unroll 4
      for (int ridx7 = 0; ridx7 < 40; ridx7++) {
        f32x8 val12 = acc0;
        long alu13 = ((long)ridx7);
        float val14 = data0[(alu3+alu13)];
        long alu15 = (alu13*16L);
        f32x8 val16 = *(f32x8u*)(data1+(alu11+alu15));
        acc0 = (val12+(val14*val16));
        f32x8 val17 = acc1;
        f32x8 val18 = *(f32x8u*)(data1+(alu11+(alu15+8L)));
        acc1 = (val17+(val14*val18));
        f32x8 val19 = acc2;
        float val20 = data0[((alu3+40L)+alu13)];
        acc2 = (val19+(val20*val16));
        f32x8 val21 = acc3;
        acc3 = (val21+(val20*val18));
        f32x8 val22 = acc4;
        float val23 = data0[((alu3+80L)+alu13)];
        acc4 = (val22+(val23*val16));
        f32x8 val24 = acc5;
        acc5 = (val24+(val23*val18));
        f32x8 val25 = acc6;
        float val26 = data0[((alu3+120L)+alu13)];
        acc6 = (val25+(val26*val16));
        f32x8 val27 = acc7;
        acc7 = (val27+(val26*val18));
        f32x8 val28 = acc8;
        float val29 = data0[((alu3+160L)+alu13)];
        acc8 = (val28+(val29*val16));
        f32x8 val30 = acc9;
        acc9 = (val30+(val29*val18));
        f32x8 val31 = acc10;
        float val32 = data0[((alu3+200L)+alu13)];
        acc10 = (val31+(val32*val16));
        f32x8 val33 = acc11;
        acc11 = (val33+(val32*val18));
      }
      f32x8 val34 = acc0;
      *(f32x8u*)(data2+(alu2+alu10)) = val34;
      long alu35 = (alu10+8L);
      f32x8 val36 = acc1;
      *(f32x8u*)(data2+(alu2+alu35)) = val36;
      f32x8 val37 = acc2;
      *(f32x8u*)(data2+(alu4+alu10)) = val37;
      f32x8 val38 = acc3;
      *(f32x8u*)(data2+(alu4+alu35)) = val38;
      f32x8 val39 = acc4;
      *(f32x8u*)(data2+(alu5+alu10)) = val39;
      f32x8 val40 = acc5;
      *(f32x8u*)(data2+(alu5+alu35)) = val40;
      f32x8 val41 = acc6;
      *(f32x8u*)(data2+(alu6+alu10)) = val41;
      f32x8 val42 = acc7;
      *(f32x8u*)(data2+(alu6+alu35)) = val42;
      f32x8 val43 = acc8;
      *(f32x8u*)(data2+(alu7+alu10)) = val43;
      f32x8 val44 = acc9;
      *(f32x8u*)(data2+(alu7+alu35)) = val44;
      f32x8 val45 = acc10;
      *(f32x8u*)(data2+(alu8+alu10)) = val45;
      f32x8 val46 = acc11;
      *(f32x8u*)(data2+(alu8+alu35)) = val46;
    }
  }
  if (first<=8 && 8<last) for (int ridx24 = 0; ridx24 < 8; ridx24++) {
    long alu47 = ((long)ridx24);
    long alu48 = (alu47*390L);
    f32x8 acc12;
    acc12 = (0.0f-(f32x8){});
    long alu49 = (alu47*240L);
    f32x8 acc13;
    acc13 = (0.0f-(f32x8){});
    f32x8 acc14;
    acc14 = (0.0f-(f32x8){});
    f32x8 acc15;
    acc15 = (0.0f-(f32x8){});
    f32x8 acc16;
    acc16 = (0.0f-(f32x8){});
    f32x8 acc17;
    acc17 = (0.0f-(f32x8){});
    #pragma GCC unroll 4
    for (int ridx9 = 0; ridx9 < 40; ridx9++) {
      f32x8 val50 = acc12;
      long alu51 = ((long)ridx9);
      float val52 = data0[(alu49+alu51)];
      f32x8 val53 = *(f32x8u*)(data1+((alu51*16L)+2560L));
      acc12 = (val50+(val52*val53));
      f32x8 val54 = acc13;
      float val55 = data0[((alu49+40L)+alu51)];
      acc13 = (val54+(val55*val53));
      f32x8 val56 = acc14;
      float val57 = data0[((alu49+80L)+alu51)];
      acc14 = (val56+(val57*val53));
      f32x8 val58 = acc15;
      float val59 = data0[((alu49+120L)+alu51)];
      acc15 = (val58+(val59*val53));
      f32x8 val60 = acc16;
      float val61 = data0[((alu49+160L)+alu51)];
      acc16 = (val60+(val61*val53));
      f32x8 val62 = acc17;
      float val63 = data0[((alu49+200L)+alu51)];
      acc17 = (val62+(val63*val53));
    }
    f32x8 val64 = acc12;
    { f32x8 part = val64; for (int k = 0; k < 1; k++) (data2+(alu48+64L))[k] = part[k]; }
    f32x8 val65 = acc13;
    { f32x8 part = val65; for (int k = 0; k < 1; k++) (data2+(alu48+129L))[k] = part[k]; }
    f32x8 val66 = acc14;
    { f32x8 part = val66; for (int k = 0; k < 1; k++) (data2+(alu48+194L))[k] = part[k]; }
    f32x8 val67 = acc15;
    { f32x8 part = val67; for (int k = 0; k < 1; k++) (data2+(alu48+259L))[k] = part[k]; }
    f32x8 val68 = acc16;
    { f32x8 part = val68; for (int k = 0; k < 1; k++) (data2+(alu48+324L))[k] = part[k]; }
    f32x8 val69 = acc17;
    { f32x8 part = val69; for (int k = 0; k < 1; k++) (data2+(alu48+389L))[k] = part[k]; }
  }
}

// e_48_65: tmp1 in2 out0
static inline float bits_f32_i32(int x) {
  float y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

static inline int bits_i32_f32(float x) {
  int y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i32x8 __attribute__((vector_size(32)));

static inline f32x8 select_f32x8(i32x8 c, f32x8 a, f32x8 b) {
  return (f32x8)((c & (i32x8)a) | (~c & (i32x8)b));
}

enum {e_48_65_steps = 49};
void e_48_65(float* restrict data0, float* restrict data1, float* restrict data2, long first, long last) {
  for (int ridx16 = (first>0)?first-0:0; ridx16 < ((last<48)?last-0:48); ridx16++) {
    long alu1 = (((long)ridx16)*65L);
    for (int ridx11 = 0; ridx11 < 2; ridx11++) {
      long alu2 = (((long)ridx11)*32L);
      long alu3 = (alu1+alu2);
      f32x8 val4 = *(f32x8u*)(data1+alu2);
      long alu5 = (alu2+8L);
      long alu6 = (alu2+16L);
      long alu7 = (alu2+24L);
      f32x8 val8 = *(f32x8u*)(data0+alu3);
      long alu9 = (alu1+alu5);
      f32x8 val10 = *(f32x8u*)(data1+alu5);
      long alu11 = (alu1+alu6);
      f32x8 val12 = *(f32x8u*)(data1+alu6);
      long alu13 = (alu1+alu7);
      f32x8 val14 = *(f32x8u*)(data1+alu7);
      f32x8 alu15 = (val8+val4);
      f32x8 val16 = *(f32x8u*)(data0+alu9);
      f32x8 val17 = *(f32x8u*)(data0+alu11);
      f32x8 val18 = *(f32x8u*)(data0+alu13);
      i32x8 alu19 = ((i32x8)(alu15*0.7071067811865476f));
      f32x8 alu20 = (val16+val10);
      f32x8 alu21 = (val17+val12);
      f32x8 alu22 = (val18+val14);
      f32x8 alu23 = ((f32x8)(alu19&2147483647));
      i32x8 alu24 = ((i32x8)(alu20*0.7071067811865476f));
      i32x8 alu25 = ((i32x8)(alu21*0.7071067811865476f));
      i32x8 alu26 = ((i32x8)(alu22*0.7071067811865476f));
      f32x8 alu27 = select_f32x8((4.0f<alu23), (4.0f-(f32x8){}), alu23);
      f32x8 alu28 = ((f32x8)(alu24&2147483647));
      f32x8 alu29 = ((f32x8)(alu25&2147483647));
      f32x8 alu30 = ((f32x8)(alu26&2147483647));
      f32x8 alu31 = (alu27*alu27);
      f32x8 alu32 = ((alu27*1.2787457990270923e-06f)+-4.7912322770571336e-05f);
      f32x8 alu33 = select_f32x8((4.0f<alu28), (4.0f-(f32x8){}), alu28);
      f32x8 alu34 = select_f32x8((4.0f<alu29), (4.0f-(f32x8){}), alu29);
      f32x8 alu35 = select_f32x8((4.0f<alu30), (4.0f-(f32x8){}), alu30);
      f32x8 alu36 = ((alu31*8.513099601259455e-05f)+-0.0008175637922249734f);
      f32x8 alu37 = (alu27*((alu27*alu32)+0.0007271285285241902f));
      f32x8 alu38 = (alu33*alu33);
      f32x8 alu39 = ((alu33*1.2787457990270923e-06f)+-4.7912322770571336e-05f);
      f32x8 alu40 = (alu34*alu34);
      f32x8 alu41 = ((alu34*1.2787457990270923e-06f)+-4.7912322770571336e-05f);
      f32x8 alu42 = (alu35*alu35);
      f32x8 alu43 = ((alu35*1.2787457990270923e-06f)+-4.7912322770571336e-05f);
      f32x8 alu44 = (alu31*((alu31*alu36)+0.005203858949244022f));
      f32x8 alu45 = (alu27*(alu37+-0.006333646830171347f));
      f32x8 alu46 = ((alu38*8.513099601259455e-05f)+-0.0008175637922249734f);
      f32x8 alu47 = (alu33*((alu33*alu39)+0.0007271285285241902f));
      f32x8 alu48 = ((alu40*8.513099601259455e-05f)+-0.0008175637922249734f);
      f32x8 alu49 = (alu34*((alu34*alu41)+0.0007271285285241902f));
      f32x8 alu50 = ((alu42*8.513099601259455e-05f)+-0.0008175637922249734f);
      f32x8 alu51 = (alu35*((alu35*alu43)+0.0007271285285241902f));
      f32x8 alu52 = (alu31*(alu44+-0.02686050906777382f));
      f32x8 alu53 = (alu27*(alu45+0.03683765232563019f));
      f32x8 alu54 = (alu38*((alu38*alu46)+0.005203858949244022f));
      f32x8 alu55 = (alu33*(alu47+-0.006333646830171347f));
      f32x8 alu56 = (alu40*((alu40*alu48)+0.005203858949244022f));
      f32x8 alu57 = (alu34*(alu49+-0.006333646830171347f));
      f32x8 alu58 = (alu42*((alu42*alu50)+0.005203858949244022f));
      f32x8 alu59 = (alu35*(alu51+-0.006333646830171347f));
      f32x8 alu60 = (alu31*(alu52+0.11283715069293976f));
      f32x8 alu61 = (alu27*(alu53+-0.15691101551055908f));
      f32x8 alu62 = (alu38*(alu54+-0.02686050906777382f));
      f32x8 alu63 = (alu33*(alu55+0.03683765232563019f));
      f32x8 alu64 = (alu40*(alu56+-0.02686050906777382f));
      f32x8 alu65 = (alu34*(alu57+0.03683765232563019f));
      f32x8 alu66 = (alu42*(alu58+-0.02686050906777382f));
      f32x8 alu67 = (alu35*(alu59+0.03683765232563019f));
      f32x8 alu68 = (alu31*(alu60+-0.37612634897232056f));
      f32x8 alu69 = (alu27*(alu61+-0.9132400751113892f));
      f32x8 alu70 = (alu38*(alu62+0.11283715069293976f));
      f32x8 alu71 = (alu33*(alu63+-0.15691101551055908f));
      f32x8 alu72 = (alu40*(alu64+0.11283715069293976f));
      f32x8 alu73 = (alu34*(alu65+-0.15691101551055908f));
      f32x8 alu74 = (alu42*(alu66+0.11283715069293976f));
      f32x8 alu75 = (alu35*(alu67+-0.15691101551055908f));
      f32x8 alu76 = (alu27*(alu68+0.128379225730896f));
      f32x8 alu77 = (alu27*(alu69+-1.6297321319580078f));
      f32x8 alu78 = (alu38*(alu70+-0.37612634897232056f));
      f32x8 alu79 = (alu33*(alu71+-0.9132400751113892f));
      f32x8 alu80 = (alu40*(alu72+-0.37612634897232056f));
      f32x8 alu81 = (alu34*(alu73+-0.9132400751113892f));
      f32x8 alu82 = (alu42*(alu74+-0.37612634897232056f));
      f32x8 alu83 = (alu35*(alu75+-0.9132400751113892f));
      f32x8 alu84 = (alu77+0.0002820172521751374f);
      f32x8 alu85 = (alu33*(alu78+0.128379225730896f));
      f32x8 alu86 = (alu33*(alu79+-1.6297321319580078f));
      f32x8 alu87 = (alu34*(alu80+0.128379225730896f));
      f32x8 alu88 = (alu34*(alu81+-1.6297321319580078f));
      f32x8 alu89 = (alu35*(alu82+0.128379225730896f));
      f32x8 alu90 = (alu35*(alu83+-1.6297321319580078f));
      f32x8 alu91 = (alu84+12582912.0f);
      f32x8 alu92 = (alu86+0.0002820172521751374f);
      f32x8 alu93 = (alu88+0.0002820172521751374f);
      f32x8 alu94 = (alu90+0.0002820172521751374f);
      f32x8 alu95 = ((alu91+-12582912.0f)*-1.0f);
      f32x8 alu96 = ((f32x8)((((i32x8)alu91)+-1262485377)<<23));
      f32x8 alu97 = (alu92+12582912.0f);
      f32x8 alu98 = (alu93+12582912.0f);
      f32x8 alu99 = (alu94+12582912.0f);
      f32x8 alu100 = (alu84+alu95);
      f32x8 alu101 = ((alu97+-12582912.0f)*-1.0f);
      f32x8 alu102 = ((f32x8)((((i32x8)alu97)+-1262485377)<<23));
      f32x8 alu103 = ((alu98+-12582912.0f)*-1.0f);
      f32x8 alu104 = ((f32x8)((((i32x8)alu98)+-1262485377)<<23));
      f32x8 alu105 = ((alu99+-12582912.0f)*-1.0f);
      f32x8 alu106 = ((f32x8)((((i32x8)alu99)+-1262485377)<<23));
      f32x8 alu107 = ((alu100*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu108 = (alu92+alu101);
      f32x8 alu109 = (alu93+alu103);
      f32x8 alu110 = (alu94+alu105);
      f32x8 alu111 = (alu100*((alu100*alu107)+0.009618008509278297f));
      f32x8 alu112 = ((alu108*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu113 = ((alu109*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu114 = ((alu110*0.00015475194959435612f)+0.0013400273164734244f);
      f32x8 alu115 = (alu100*(alu111+0.055503278970718384f));
      f32x8 alu116 = (alu108*((alu108*alu112)+0.009618008509278297f));
      f32x8 alu117 = (alu109*((alu109*alu113)+0.009618008509278297f));
      f32x8 alu118 = (alu110*((alu110*alu114)+0.009618008509278297f));
      f32x8 alu119 = (alu100*(alu115+0.24022650718688965f));
      f32x8 alu120 = (alu108*(alu116+0.055503278970718384f));
      f32x8 alu121 = (alu109*(alu117+0.055503278970718384f));
      f32x8 alu122 = (alu110*(alu118+0.055503278970718384f));
      f32x8 alu123 = (alu100*(alu119+0.6931471824645996f));
      f32x8 alu124 = (alu108*(alu120+0.24022650718688965f));
      f32x8 alu125 = (alu109*(alu121+0.24022650718688965f));
      f32x8 alu126 = (alu110*(alu122+0.24022650718688965f));
      f32x8 alu127 = ((alu123+1.0f)*alu96);
      f32x8 alu128 = (alu108*(alu124+0.6931471824645996f));
      f32x8 alu129 = (alu109*(alu125+0.6931471824645996f));
      f32x8 alu130 = (alu110*(alu126+0.6931471824645996f));
      f32x8 alu131 = ((alu127*-1.0f)+1.0f);
      f32x8 alu132 = ((alu128+1.0f)*alu102);
      f32x8 alu133 = ((alu129+1.0f)*alu104);
      f32x8 alu134 = ((alu130+1.0f)*alu106);
      f32x8 alu135 = select_f32x8((alu27<0.9f), (alu76+alu27), alu131);
      f32x8 alu136 = ((alu132*-1.0f)+1.0f);
      f32x8 alu137 = ((alu133*-1.0f)+1.0f);
      f32x8 alu138 = ((alu134*-1.0f)+1.0f);
      f32x8 alu139 = ((f32x8)(((i32x8)alu135)^(alu19&(-2147483647-1))));
      f32x8 alu140 = select_f32x8((alu33<0.9f), (alu85+alu33), alu136);
      f32x8 alu141 = select_f32x8((alu34<0.9f), (alu87+alu34), alu137);
      f32x8 alu142 = select_f32x8((alu35<0.9f), (alu89+alu35), alu138);
      f32x8 alu143 = ((alu15*0.5f)*(alu139+1.0f));
      f32x8 alu144 = ((f32x8)(((i32x8)alu140)^(alu24&(-2147483647-1))));
      f32x8 alu145 = ((f32x8)(((i32x8)alu141)^(alu25&(-2147483647-1))));
      f32x8 alu146 = ((f32x8)(((i32x8)alu142)^(alu26&(-2147483647-1))));
      *(f32x8u*)(data2+alu3) = alu143;
      f32x8 alu147 = ((alu20*0.5f)*(alu144+1.0f));
      f32x8 alu148 = ((alu21*0.5f)*(alu145+1.0f));
      f32x8 alu149 = ((alu22*0.5f)*(alu146+1.0f));
      *(f32x8u*)(data2+alu9) = alu147;
      *(f32x8u*)(data2+alu11) = alu148;
      *(f32x8u*)(data2+alu13) = alu149;
    }
  }
  float val150 = data1[64L];
  if (first<=48 && 48<last) for (int ridx10 = 0; ridx10 < 48; ridx10++) {
    long alu151 = ((((long)ridx10)*65L)+64L);
    float val152 = data0[alu151];
    float alu153 = (val152+val150);
    int alu154 = bits_i32_f32((alu153*0.7071067811865476f));
    float alu155 = bits_f32_i32((alu154&2147483647));
    float alu156 = ((4.0f<alu155)?4.0f:alu155);
    float alu157 = (alu156*alu156);
    float alu158 = ((alu156*((alu156*((alu156*((alu156*((alu156*((alu156*((alu156*((alu156*1.2787457990270923e-06f)+-4.7912322770571336e-05f))+0.0007271285285241902f))+-0.006333646830171347f))+0.03683765232563019f))+-0.15691101551055908f))+-0.9132400751113892f))+-1.6297321319580078f))+0.0002820172521751374f);
    float alu159 = (alu158+12582912.0f);
    float alu160 = (alu158+((alu159+-12582912.0f)*-1.0f));
    data2[alu151] = ((alu153*0.5f)*(bits_f32_i32((bits_i32_f32(((alu156<0.9f)?((alu156*((alu157*((alu157*((alu157*((alu157*((alu157*((alu157*8.513099601259455e-05f)+-0.0008175637922249734f))+0.005203858949244022f))+-0.02686050906777382f))+0.11283715069293976f))+-0.37612634897232056f))+0.128379225730896f))+alu156):(((((alu160*((alu160*((alu160*((alu160*((alu160*((alu160*0.00015475194959435612f)+0.0013400273164734244f))+0.009618008509278297f))+0.055503278970718384f))+0.24022650718688965f))+0.6931471824645996f))+1.0f)*bits_f32_i32(((bits_i32_f32(alu159)+-1262485377)<<23)))*-1.0f)+1.0f)))^(alu154&(-2147483647-1))))+1.0f));
  }
}
